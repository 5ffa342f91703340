/*
 * `mergeReport` of domain/shared-window.ts, inside Redis: a script, because reading the window and writing the count
 * must be one step. Merging by maximum, so that a repeat changes nothing. Time is Redis' own: a window lives as long as
 * its key.
 *
 * KEYS[1]  the window: a hash of `gen` and, by replica, how many each let pass
 * ARGV     replica, gen, count, time to the end, duration, the window that is over
 * Answers  gen, time to the end, the others' count, number of replicas, whether the count is in it
 */
export const mergeScript = `
local replica, count, ends_in = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local gen = redis.call('HGET', KEYS[1], 'gen')
if gen == ARGV[6] then
  redis.call('DEL', KEYS[1])
  gen = false
end
if not gen then
  gen = ARGV[2]
  redis.call('HSET', KEYS[1], 'gen', gen)
  redis.call('PEXPIRE', KEYS[1], ends_in)
else
  local left = redis.call('PTTL', KEYS[1])
  if gen ~= ARGV[2] and left - ends_in > tonumber(ARGV[5]) / 2 then count = nil end
  ends_in = left
end
local others, replicas, mine = 0, 1, 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] == replica then
    mine = tonumber(fields[i + 1])
  elseif fields[i] ~= 'gen' then
    others = others + tonumber(fields[i + 1])
    replicas = replicas + 1
  end
end
if count then redis.call('HSET', KEYS[1], replica, math.max(mine, count)) end
return {gen, ends_in, others, replicas, count and 1 or 0}`;
