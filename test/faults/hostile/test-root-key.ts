export const testRootKey = "root-key-of-the-hostile-tests-0123456789";
