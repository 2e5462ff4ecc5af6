import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { loadConfig, settingRows } from './config.ts'
import { nearest } from './nearest.ts'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ_'
const letter = fc.constantFrom(...letters)
const prefix = 'RINGWIRE_'
const names = settingRows().flatMap(({ name }) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))

/** Every word that one slip of a finger makes of this one. */
function slipsOf(word: string): Set<string> {
  const places = Array.from({ length: word.length + 1 }, (_, at) => [word.slice(0, at), word.slice(at)] as const)
  return new Set(
    places.flatMap(([before, after]) => [
      before + after.slice(1),
      before + after.slice(1, 2) + after.slice(0, 1) + after.slice(2),
      ...[...letters].flatMap((one) => [before + one + after, before + one + after.slice(1)]),
    ]),
  )
}

const meantBy = (name: string) =>
  /Did you mean (.*)\?$/.exec(loadConfig({ [prefix + name]: '' }).warnings.join('\n'))?.[1]

test('one slip in the name of a setting leads to a setting that is one slip away', () => {
  const slip = fc.constantFrom(...names).chain((name) => fc.constantFrom(...slipsOf(name)))
  fc.assert(
    fc.property(slip, (typed) => {
      fc.pre(loadConfig({ [prefix + typed]: '' }).warnings.length > 0)
      expect(slipsOf(meantBy(typed)?.replace(prefix, '') ?? '')).toContain(typed)
    }),
  )
})

test('only a setting that there is, is suggested', () => {
  const known = new Set(settingRows().flatMap(({ name }) => [name, `${name}_FILE`]))
  for (const name of ['RINGWIRE_URL', 'RINGWIRE_KEY_ID', 'RINGWIRE_KEY_SECRET']) known.add(name)
  const text = fc.string({ unit: letter, maxLength: 14 })
  fc.assert(fc.property(text, (name) => expect([undefined, ...known]).toContain(meantBy(name))))
})

test('what is suggested is a candidate that is like the word, and a word that is known is itself', () => {
  const words = fc.array(fc.string({ unit: letter, minLength: 1, maxLength: 12 }), { maxLength: 5 })
  fc.assert(
    fc.property(fc.string({ unit: letter, maxLength: 12 }), words, (typed, candidates) => {
      const meant = nearest(typed, candidates)
      if (candidates.includes(typed)) expect(meant).toBe(typed)
      if (meant === undefined) return
      expect(candidates).toContain(meant)
      // A candidate shares a letter with what was typed.
      expect([...meant].some((one) => typed.includes(one))).toBe(true)
    }),
  )
})
