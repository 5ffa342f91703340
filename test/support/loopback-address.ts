let given = 0;

/**
 * A loopback address that no other call of this test file comes from: wrong root keys are limited by address, and most
 * tests are about something else.
 */
export function nextLoopbackAddress(): string {
  given++;
  return `127.1.${(given >> 8) & 0xff}.${given & 0xff}`;
}
