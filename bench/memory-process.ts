// What a cached key and an open window take, in a process that does nothing else: `node --expose-gc memory-process.ts
// <empty folder> <number>`; prints the bytes of each as JSON.
import { join } from "node:path";
import { databaseFileIn } from "../src/store/sqlite/data-folder.ts";
import { fillStore, openStore } from "./contestants/fill-store.ts";
import { readKeyFile } from "./loads/wrk-scripts.ts";
import { bytesPerCachedKey, bytesPerWindow } from "./memory.ts";

const windows = 1_000_000;
const [folder = "", count = ""] = process.argv.slice(2);
const keys = await fillStore(folder, Number(count), join(folder, "keys"));
const store = await openStore(databaseFileIn(folder));
const cachedKey = await bytesPerCachedKey(store.keys, readKeyFile(keys));
await store.close();
console.log(JSON.stringify({ cachedKey, window: await bytesPerWindow(windows) }));
