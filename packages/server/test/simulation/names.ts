import type { Random } from '../fuzz/random.ts'

/** A uuid that a seed repeats. */
export function uuidOf(random: Random): string {
  const hex = random.bytes(16).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
