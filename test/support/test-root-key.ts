export const testRootKey = "root-key-of-the-tests-0123456789abcdef";
