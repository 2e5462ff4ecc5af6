import { expect, test } from 'bun:test'
import { playMelody, ringing } from './tones.ts'

test('where there is no AudioContext nothing is played and nothing fails', () => {
  expect(typeof AudioContext).toBe('undefined')
  expect(playMelody(ringing)()).toBeUndefined()
})
