import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";

export const testRootKey = "root-key-of-the-tests-0123456789abcdef";
/** What edges and coordinators of tests share. */
export const testInternalSecret = "internal-secret-of-the-tests-0123456789";

/** `testRootKey` may do everything; there are no others. */
export const checkTestRootKey: CheckRootKey = (presented) =>
  presented.reveal() === testRootKey ? unlimitedRootKey("root_test") : undefined;
