import { expect, test } from 'bun:test'
import { nearest } from './nearest.ts'

test('a slip leads to the nearest word, and what is like nothing to none', () => {
  const commands = ['serve', 'keys', 'products', 'token', 'call', 'config', 'migrate', 'backup', 'version']
  for (const [word, meant] of [
    ['srve', 'serve'],
    ['kesy', 'keys'],
    ['tokne', 'token'],
    ['TOKEN', 'token'],
    ['product', 'products'],
    ['ver', 'version'],
    ['nonsense', undefined],
    ['x', undefined],
    ['', undefined],
  ] as const) {
    expect([word, nearest(word, commands)]).toEqual([word, meant])
  }
  const options = ['--product', '--key-id', '--json', '--help']
  expect(nearest('--prodct', options)).toBe('--product')
  expect(nearest('--keyid', options)).toBe('--key-id')
  expect(nearest('-json', options)).toBe('--json')
  expect(nearest('--colour', options)).toBeUndefined()
  expect(nearest('a', [])).toBeUndefined()
})
