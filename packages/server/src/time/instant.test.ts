import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readInstant, readQueryInstant } from './instant.ts'

test('[TIME1] an instant is ISO 8601 with its offset', () => {
  for (const [text, same] of [
    ['2026-03-01T09:00:00Z', '2026-03-01T09:00:00.000Z'],
    ['2026-03-01T09:00Z', '2026-03-01T09:00:00.000Z'],
    ['2026-03-01T09:00:00.5Z', '2026-03-01T09:00:00.500Z'],
    ['2026-03-01T09:00:00+01:00', '2026-03-01T08:00:00.000Z'],
    ['2026-03-01T00:30:00-05:45', '2026-03-01T06:15:00.000Z'],
    ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
  ] as const) {
    expect(readInstant(text)).toBe(Date.parse(same))
  }
})

test('[TIME1] a day that does not exist, an hour that none has, and other ways to write a time are none', () => {
  const days = [
    '2026-02-29',
    '2026-02-30',
    '2100-02-29',
    '2026-04-31',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '2026-01-32',
  ]
  for (const day of days) expect([day, readInstant(`${day}T00:00:00Z`)]).toEqual([day, undefined])
  for (const text of [
    ...[
      '',
      '2026-03-01',
      '2026-03-01T09:00:00',
      '2026-03-01 09:00:00Z',
      '2026-03-01T09:00:00+0100',
      '2026-03-01T09:00:00+01',
    ],
    ...['2026-03-01T24:00:00Z', '2026-03-01T09:60:00Z', '2026-03-01T09:00:60Z', '2026-03-01T09:00:00+24:00'],
    ...[
      '2026-03-01T09:00:00+01:60',
      '2026-03-01T09:00:00.Z',
      '1772355600',
      '2026-3-1T9:00:00Z',
      '+002026-03-01T09:00:00Z',
    ],
    ...['2026-03-01T09:00:00 01:00', '2026-03-01T09:00:00ZZ', ' 2026-03-01T09:00:00Z', 'Sun, 01 Mar 2026 09:00:00 GMT'],
  ]) {
    expect([text, readInstant(text)]).toEqual([text, undefined])
  }
})

test('[TIME1] every instant that the service writes is one', () => {
  const years = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }
  fc.assert(fc.property(fc.date(years), (date) => readInstant(date.toISOString()) === date.getTime()))
})

test('[TIME1] in a query a space stands for the plus sign of the offset, and for nothing else', () => {
  expect(readQueryInstant('2026-03-01T09:00:00 01:00')).toBe(Date.parse('2026-03-01T08:00:00Z'))
  expect(readQueryInstant('2026-03-01T09:00:00Z')).toBe(Date.parse('2026-03-01T09:00:00Z'))
  for (const text of ['2026-03-01 09:00', '2026-03-01 09:00:00Z', '2026-03-01T09:00:00  01:00']) {
    expect(readQueryInstant(text)).toBeUndefined()
  }
})
