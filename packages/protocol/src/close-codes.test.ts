import { expect, test } from 'bun:test'
import { closeCodes, shouldReconnect } from './close-codes.ts'

test('[CLOSE] every code and whether to reconnect', () => {
  const decided = Object.entries(closeCodes).map(([code, { reconnect }]) => [Number(code), reconnect])
  expect(decided).toEqual([
    [1001, true],
    [1009, true],
    [1011, true],
    [1012, true],
    [1013, true],
    [4008, true],
    [4400, false],
    [4401, true],
    [4403, false],
    [4408, true],
    [4409, false],
    [4429, true],
  ])
  for (const [code, reconnect] of decided) expect(shouldReconnect(Number(code))).toBe(Boolean(reconnect))
})

test('[CLOSE] names are unique', () => {
  const names = Object.values(closeCodes).map((it) => it.name)
  expect(new Set<string>(names).size).toBe(names.length)
})

test('[CLOSE] a connection that just went away is built again; one whose frames were wrong is not', () => {
  for (const code of [1000, 1005, 1006, 1010, 1014, 1015, 3000, 4000, 4999]) expect(shouldReconnect(code)).toBe(true)
  for (const code of [1002, 1003, 1007, 1008]) expect(shouldReconnect(code)).toBe(false)
})

test('[CLOSE] a name that every object has is no close code', () => {
  expect(shouldReconnect('toString' as unknown as number)).toBe(true)
  expect(shouldReconnect(Number.NaN)).toBe(true)
})
