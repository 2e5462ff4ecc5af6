/** Readers of option values: what they refuse is a usage error. */
import { InvalidArgumentError } from 'commander'

/** A name as the service takes it: 1 to 255 bytes of UTF-8, not blank. */
export function name(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must not be blank.')
  if (Buffer.byteLength(text) > 255) throw new InvalidArgumentError('It must be at most 255 bytes.')
  return text
}

/** The same for an option that can be given several times. */
export function names(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), name(text)]
}

/** A key ID travels in a header. */
export function keyId(text: string): string {
  if (!/^[\x21-\x7e]{1,255}$/.test(text))
    throw new InvalidArgumentError('It must be 1 to 255 visible ASCII characters.')
  return text
}

export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

export function yesNo(text: string): boolean {
  if (text === 'true' || text === 'yes') return true
  if (text === 'false' || text === 'no') return false
  throw new InvalidArgumentError('It must be true or false.')
}
