import { toIpRanges } from "../../src/domain/ip-allow.ts";

export function isIpRange(text: string): boolean {
  try {
    return toIpRanges([text]).length > 0;
  } catch {
    return false;
  }
}
