// What users write with clients that are generated from the OpenAPI document: a key is created, renamed, read and verified. The
// arguments are the address of the service and a root key.

export const java = `
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.KeysApi;
import org.openapitools.client.auth.HttpBearerAuth;
import org.openapitools.client.model.*;

public class Main {
  public static void main(String[] args) throws Exception {
    var client = new ApiClient();
    client.setBasePath(args[0]);
    ((HttpBearerAuth) client.getAuthentication("rootKey")).setBearerToken(args[1]);
    var keys = new KeysApi(client);
    var created = keys.keysCreateKey(new CreateKeyRequest().apiId("demo").remaining(2), null);
    var update = new UpdateKeyRequest().keyId(created.getKeyId()).name("renamed");
    keys.keysUpdateKey(update, null);
    var name = keys.keysGetKey(new GetKeyRequest().keyId(created.getKeyId())).getName();
    var verdict = keys.keysVerifyKey(new VerifyKeyRequest().key(created.getKey()));
    System.out.println(name + " " + verdict.getValid() + " " + verdict.getCode() + " " + verdict.getRemaining());
  }
}
`;

export const python = `
import sys
from openapi_client import *

client = ApiClient(Configuration(host=sys.argv[1], access_token=sys.argv[2]))
keys = KeysApi(client)
created = keys.keys_create_key(CreateKeyRequest(apiId="demo", remaining=2))
keys.keys_update_key(UpdateKeyRequest(keyId=created.key_id, name="renamed"))
name = keys.keys_get_key(GetKeyRequest(keyId=created.key_id)).name
verdict = keys.keys_verify_key(VerifyKeyRequest(key=created.key))
print(name, str(verdict.valid).lower(), verdict.code, verdict.remaining)
`;

export const goModule = `module example.com/app

go 1.24

require github.com/oapi-codegen/runtime v1.8.0
`;

export const go = `
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.com/app/latchkey"
)

func main() {
	ctx := context.Background()
	asRoot := func(ctx context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}
	client, _ := latchkey.NewClientWithResponses(os.Args[1], latchkey.WithRequestEditorFn(asRoot))
	remaining, name := int32(2), "renamed"
	created, _ := client.KeysCreateKeyWithResponse(ctx, nil, latchkey.CreateKeyRequest{ApiId: "demo", Remaining: &remaining})
	update := latchkey.UpdateKeyRequest{KeyId: created.JSON200.KeyId, Name: &name}
	_, _ = client.KeysUpdateKeyWithResponse(ctx, nil, update)
	read, _ := client.KeysGetKeyWithResponse(ctx, latchkey.GetKeyRequest{KeyId: &created.JSON200.KeyId})
	verified, _ := client.KeysVerifyKeyWithResponse(ctx, latchkey.VerifyKeyRequest{Key: created.JSON200.Key})
	verdict := verified.JSON200
	fmt.Println(*read.JSON200.Name, verdict.Valid, verdict.Code, *verdict.Remaining)
}
`;

export const typescript = `
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };
declare const console: { log(...values: unknown[]): void };
const [, , baseUrl = "", rootKey = ""] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { authorization: "Bearer " + rootKey } });
const created = await client.POST("/v1/keys.createKey", { body: { apiId: "demo", remaining: 2 } });
const { keyId = "", key = "" } = created.data ?? {};
await client.POST("/v1/keys.updateKey", { body: { keyId, name: "renamed" } });
const read = await client.POST("/v1/keys.getKey", { body: { keyId } });
const { data: verdict } = await client.POST("/v1/keys.verifyKey", { body: { key } });
console.log(read.data?.name, verdict?.valid, verdict?.code, verdict?.remaining);
`;
