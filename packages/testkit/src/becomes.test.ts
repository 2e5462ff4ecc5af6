import { expect, test } from 'bun:test'
import { becomes } from './becomes.ts'

test('what is read may become equal later, and is not read again then', async () => {
  const values = [{ text: 'Connecting' }, { text: 'Connected', timer: 1 }, { text: 'Connected' }, { text: 'Over' }]
  await becomes(async () => values.shift(), { text: 'Connected' })
  expect(values).toEqual([{ text: 'Over' }])
})

test('a text may become one that an expression matches', async () => {
  const texts = [null, 'red', 'dark blue']
  await becomes(async () => texts.shift(), /\bblue$/)
  expect(texts).toEqual([])
})

test('a failure says what was read last, and what was expected', async () => {
  const values = ['red', 'green']
  const failed = becomes(async () => (values.length > 1 ? values.shift() : values[0]), 'blue', 20)
  await expect(failed).rejects.toThrow('waited 20 ms until "green" becomes "blue"')
})

test('a page that cannot be read is a failure at once', async () => {
  await expect(becomes(async () => Promise.reject(new Error('closed')), 1)).rejects.toThrow('closed')
})
