import { expect, test } from 'bun:test'
import { comparison, type MeasurementName, type MeasurementResult } from './measurement.ts'
import { pageWith } from './page.ts'

const result = (name: MeasurementName, more: Partial<MeasurementResult> = {}): MeasurementResult => ({
  name,
  tables: [{ title: `Table of ${name}`, head: ['', 'a | b'], rows: [['Ringwire', '1']] }],
  comparisons: [comparison(name, 'bare Bun', [0.4, 0.5, 0.6], { bound: 'at least', value: 0.6 })],
  notes: ['Nothing was lost.'],
  raw: null,
  ...more,
})
const about = ['2 cores', '9 rounds.']
const written = (page: string, date: string, ...results: MeasurementResult[]) =>
  pageWith(page, { results, about, date })

test('a chapter has the machine, its pictures, its tables, its ratios with the targets, and its notes', () => {
  const chart = { kind: 'bars', name: 'relay', title: 'Relay', unit: 'x', bars: [] } as const
  const page = written('', '2026-11-30', result('relay', { charts: [chart] }))
  expect(page.slice(page.indexOf('## relay'))).toBe(`## relay

2026-11-30. 2 cores. 9 rounds.

![Relay](images/bench/relay.svg)

**Table of relay**

|  | a \\| b |
|---|--:|
| Ringwire | 1 |

**Ratios: Ringwire over the other, one per round**

| measurement | against | median | min | max | target |  |
|---|--:|--:|--:|--:|--:|--:|
| relay | bare Bun | 0.50 | 0.40 | 0.60 | ≥ 0.6 | not met |

- Nothing was lost.
`)
})

test('it begins with everything that has a target, whichever run measured it', () => {
  const without = { comparisons: [comparison('tls', 'bare Bun', [2], null)] }
  const first = written('', '2026-11-29', result('call'), result('connect', without))
  expect(written(first, '2026-11-30', result('relay'))).toContain(`## Targets

| measurement | against | median | min | max | target |  |
|---|--:|--:|--:|--:|--:|--:|
| relay | bare Bun | 0.50 | 0.40 | 0.60 | ≥ 0.6 | not met |
| call | bare Bun | 0.50 | 0.40 | 0.60 | ≥ 0.6 | not met |

## relay
`)
})

test('a later run replaces its own chapters, leaves the others, and keeps the order', () => {
  const first = written('', '2026-11-29', result('call'), result('tls'))
  const second = written(first, '2026-11-30', result('relay'), result('tls'))
  expect(second.match(/^## (?!Targets).*\n\n\S+/gm)).toEqual([
    '## relay\n\n2026-11-30.',
    '## call\n\n2026-11-29.',
    '## tls\n\n2026-11-30.',
  ])
  expect(written(second, '2026-11-30', result('relay'), result('tls'))).toBe(second)
})

test('what is no measurement any more has no chapter', () => {
  expect(written('# Old\n\n## gone\n\nText.\n', '2026-11-30', result('relay'))).not.toContain('gone')
})
