/** Readers of option values: what they refuse is a usage error, which says the rule. */

import { isDotSegment } from '@ringwire/protocol/text'
import { InvalidArgumentError } from 'commander'
import { isProductName, productRule } from '../products/keys.ts'

/** As the service takes the IDs and names of participants: 1 to 255 bytes of UTF-8, not blank. */
export function name(text: string): string {
  if (text.trim() !== '' && Buffer.byteLength(text) <= 255) return text
  throw new InvalidArgumentError('It must be 1 to 255 bytes of UTF-8, and not blank.')
}

/** The same for the participant of a token: no URL path can carry "." and ".." [ID3]. */
export function participantName(text: string): string {
  if (isDotSegment(text)) throw new InvalidArgumentError('It must not be "." or "..", which no URL path can carry.')
  return name(text)
}

/** The same for an option that can be given several times. */
export function participantNames(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), participantName(text)]
}

/** What the name of a new product may be. A backend has to be able to write it, and a person to read it. */
export function product(text: string): string {
  if (isProductName(text)) return text
  throw new InvalidArgumentError(`A product is ${productRule}.`)
}

export function products(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), product(text)]
}

/** What the ID of a new key may be. It travels in a header, and is an argument of other commands. */
export const keyIdRule = '1 to 255 visible ASCII characters, the first of them not -'

export function keyId(text: string): string {
  if (/^(?!-)[\x21-\x7e]{1,255}$/.test(text)) return text
  throw new InvalidArgumentError(`A key ID is ${keyIdRule}.`)
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
