import { expect, test } from 'bun:test'
import { commandsOf, oneLine, type Tally, tallyBetween, withoutIdle } from './tally.ts'

const tally = (transactions: number, statement: number, script: number): Tally => ({
  transactions,
  statements: new Map([['SELECT $1', { calls: statement, ms: statement / 2 }]]),
  commands: new Map([
    ['evalsha', script],
    ['info', 7 * transactions],
  ]),
})

test('commands are read as Redis prints them, also those of two words', () => {
  const stats =
    '# Commandstats\r\ncmdstat_evalsha:calls=12,usec=3,usec_per_call=0.25\r\ncmdstat_pubsub|numsub:calls=3,usec=1\r\n'
  expect([...commandsOf(stats)]).toEqual([
    ['evalsha', 12],
    ['pubsub|numsub', 3],
  ])
})

test('what came between two readings is the difference, without what the reading asks itself', () => {
  const { transactions, statements, commands } = tallyBetween(tally(10, 4, 5), tally(16, 10, 6))
  expect(transactions).toBe(6)
  expect([...statements]).toEqual([['SELECT $1', { calls: 6, ms: 3 }]])
  expect([...commands]).toEqual([['evalsha', 1]])
})

test('a call has its share of what is left when that of an idle service is taken away', () => {
  const { transactions, statements, commands } = withoutIdle(tally(100, 50, 30), tally(40, 60, 10), 0.5, 4)
  expect(transactions).toBe(20)
  expect([...statements]).toEqual([['SELECT $1', { calls: 5, ms: 2.5 }]])
  expect(commands.get('evalsha')).toBe(6.25)
})

test('a statement is shown in one line', () => {
  expect(oneLine('\n  SELECT 1,\n    2')).toBe('SELECT 1, 2')
})
