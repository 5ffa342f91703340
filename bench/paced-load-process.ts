// A paced load in a process of its own: `fork`ed with the load as its message, answers the log of what it was told.
import { type PacedLoadOptions, pacedLoad } from "../test/support/paced-load.ts";

process.on("message", async (load: PacedLoadOptions) => {
  process.send?.(await pacedLoad(load));
});
