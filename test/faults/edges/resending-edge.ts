import { Coordinators } from "../../../src/core/remote/coordinators.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";

/* Loaded before the program, this makes an edge that sends a use again when its answer was lost. */

const { call: callOnce } = Coordinators.prototype;

Coordinators.prototype.call = async function (...args) {
  try {
    return await callOnce.apply(this, args);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return callOnce.apply(this, args);
  }
};
