import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** What honest clients at full speed make of it: at most 215 MB were measured. */
const usualBytesMax = 256 * 1024 * 1024;

/**
 * Bounds the memory that an attack over HTTP/2 can take.
 *
 * V8 frees closed connections and streams late, and counts them as alive until then (adr 16). By default its old
 * generation may grow to four times what is alive. So under a long attack memory would grow with each collection. Above
 * the usual size the old generation may only double. Below it V8's default holds, which is cheaper.
 */
export class HeapGrowth {
  #isBounded = false;

  /** To be called now and then, in each thread: the heap belongs to a thread, the flag to the process. */
  sweep(heapBytes = getHeapStatistics().total_heap_size, setFlag = setFlagsFromString): void {
    const isLarge = heapBytes > usualBytesMax;
    // Repeated: another thread may have taken it back meanwhile.
    if (isLarge) setFlag("--heap-growing-percent=100");
    else if (this.#isBounded) setFlag("--heap-growing-percent=0");
    this.#isBounded = isLarge;
  }
}
