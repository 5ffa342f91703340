export const testRootKey = "root-key-of-the-tests-0123456789abcdef";
/** What edges and coordinators of tests share. */
export const testInternalSecret = "internal-secret-of-the-tests-0123456789";
