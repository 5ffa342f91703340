-- Asks Latchkey whether a request may pass, and refuses it otherwise. How to use it: docs/haproxy.md
--
--   http-request lua.latchkey http://127.0.0.1:8079/v1/authz?apiId=demo

-- Above what backend latchkey needs to answer in any case. HAProxy's client repeats what has timed out, and the key could be
-- charged twice.
local TIMEOUT_MS = 20000

-- Sent to Latchkey if the request has them.
local ASKED_WITH = { "authorization", "x-api-key", "traceparent", "tracestate" }

-- Passed on to the API with a request whose key is valid, in place of what an end user has sent.
local TOLD_TO_API = { "x-latchkey-key-id", "x-latchkey-owner-id", "x-latchkey-code" }

-- Kept in variables for the answer of the API: how the limits stand.
local LIMITS = { ["ratelimit"] = "txn.latchkey_ratelimit", ["ratelimit-policy"] = "txn.latchkey_ratelimit_policy" }

-- Passed on to the end user with a refusal.
local TOLD_TO_END_USER = { "www-authenticate", "retry-after", "ratelimit", "ratelimit-policy" }

-- Every other status is an outage, or a mistake in the configuration.
local REFUSALS = { [401] = true, [403] = true, [429] = true }

-- The first value. HAProxy counts values from 0.
local function header_of(headers, name)
  local values = headers and headers[name]
  return values and values[0]
end

local function ask(txn, url)
  local received = txn.http:req_get_headers()
  local headers = { ["x-real-ip"] = { txn.sf:src() } }
  for _, name in ipairs(ASKED_WITH) do
    local value = header_of(received, name)
    if value then
      headers[name] = { value }
    end
  end
  return core.httpclient():get({ url = url, headers = headers, timeout = TIMEOUT_MS })
end

local function pass(txn, answer)
  for _, name in ipairs(TOLD_TO_API) do
    local value = header_of(answer.headers, name)
    if value and value ~= "" then
      txn.http:req_set_header(name, value)
    else
      txn.http:req_del_header(name)
    end
  end
  for name, variable in pairs(LIMITS) do
    local value = header_of(answer.headers, name)
    if value then
      txn:set_var(variable, value)
    end
  end
end

local function refuse(txn, answer)
  local is_refusal = answer and REFUSALS[answer.status]
  local reply = txn:reply({ status = is_refusal and answer.status or 503 })
  for _, name in ipairs(TOLD_TO_END_USER) do
    local value = is_refusal and header_of(answer.headers, name)
    if value then
      reply:add_header(name, value)
    end
  end
  reply:add_header("content-length", "0")
  txn:done(reply)
end

core.register_action("latchkey", { "http-req" }, function(txn, url)
  -- An error here would let the request pass.
  local is_asked, answer = pcall(ask, txn, url)
  if is_asked and answer and answer.status == 200 then
    pass(txn, answer)
  else
    refuse(txn, is_asked and answer or nil)
  end
end, 1)
