/**
 * Waits while a number falls, and gives what is left of it: 0, or what did not get less for `patienceMs`. A fixed time for all
 * of it would take the messages of a slow server on a busy core for lost.
 */
export async function whileItFalls(
  left: () => number,
  patienceMs: number,
  isOver: () => boolean = () => false,
): Promise<number> {
  let least = left()
  let deadline = performance.now() + patienceMs
  while (least > 0 && !isOver() && performance.now() < deadline) {
    await Bun.sleep(2)
    const now = left()
    if (now < least) deadline = performance.now() + patienceMs
    least = Math.min(least, now)
  }
  return left()
}
