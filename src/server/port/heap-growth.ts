import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** Honest clients at full speed make a heap of at most 215 MB, beside the keys in memory. */
const usualBytesMax = 224 * 1024 * 1024;
/** New connections in one sweep. Most honest clients keep theirs. */
const usualConnectionsMax = 50;
/** For so many sweeps after the last one with more connections. */
const sweepsAfter = 60;

/**
 * Bounds what clients that connect again and again cost the others in memory and pauses.
 *
 * V8 frees closed connections and streams only when it collects its old generation, and takes some for alive even then
 * (adr 16). By default that generation may grow to four times what is alive. So under a long attack memory grows with
 * each collection, and so do its pauses. Meanwhile the old generation may grow by a fifth only. That costs processor
 * time, so otherwise V8's default holds.
 */
export class HeapGrowth {
  #sweepsLeft = 0;

  /** To be called every second in each thread: the heap belongs to a thread, the flag to the process. */
  sweep(
    newConnections: number,
    heapBytes = getHeapStatistics().total_heap_size,
    setFlag: (flag: string) => void = setFlagsFromString,
  ): void {
    if (newConnections > usualConnectionsMax && heapBytes > usualBytesMax) this.#sweepsLeft = sweepsAfter;
    if (this.#sweepsLeft === 0) return;
    this.#sweepsLeft--;
    // Repeated: another thread may have taken it back.
    setFlag(this.#sweepsLeft > 0 ? "--heap-growing-percent=20" : "--heap-growing-percent=0");
  }
}
