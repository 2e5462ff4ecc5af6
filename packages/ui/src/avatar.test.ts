import { expect, test } from 'bun:test'
import { hueOf, initials } from './avatar.tsx'

test('initials are of the first and the last word, whatever the script', () => {
  expect(initials('Ben Ortiz')).toBe('BO')
  expect(initials('ada')).toBe('A')
  expect(initials('Juan Carlos de la Vega')).toBe('JV')
  expect(initials('')).toBe('')
  expect(initials('😀 smile')).toBe('😀S')
})

test('a name has one colour', () => {
  expect(hueOf('Ben Ortiz')).toBe(hueOf('Ben Ortiz'))
  expect(hueOf('Ben Ortiz')).not.toBe(hueOf('Ann Lee'))
})
