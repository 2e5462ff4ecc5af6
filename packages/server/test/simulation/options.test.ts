import { describe, expect, test } from 'bun:test'
import { defaultWorld, parseOptions } from './options.ts'

describe('the command line of npm run simulate', () => {
  test('what is not named has its default', () => {
    const parsed = parseOptions([])
    expect(parsed).toMatchObject({ ok: true, options: { from: 1, seeds: 100, world: defaultWorld, record: null } })
  })

  test('what is named counts', () => {
    const args = [
      '--seeds',
      '3',
      '--from',
      '7',
      '--seconds',
      '5',
      '--nodes',
      '2',
      '--users',
      '9',
      '--record',
      'run.jsonl',
    ]
    expect(parseOptions([...args, '--workers', '1'])).toEqual({
      ok: true,
      options: { from: 7, seeds: 3, workers: 1, world: { nodes: 2, users: 9, seconds: 5 }, record: 'run.jsonl' },
    })
  })

  test('the usual mix of faults is asked for by its name', () => {
    const parsed = parseOptions(['--mix', 'usual'])
    expect(parsed).toMatchObject({ ok: true, options: { world: { ...defaultWorld, mix: 'usual' } } })
  })

  test('people who only call and answer are asked for, too', () => {
    const parsed = parseOptions(['--people', 'plain'])
    expect(parsed).toMatchObject({ ok: true, options: { world: { ...defaultWorld, people: 'plain' } } })
    expect(parseOptions(['--people', 'desk'])).toMatchObject({ ok: true, options: { world: { people: 'desk' } } })
    expect(parseOptions(['--people', 'all'])).toEqual(parseOptions([]))
  })

  test.each([
    [['--seeds', '0'], '--seeds is a whole number from 1 to 1000000, not 0'],
    [['--nodes', 'three'], '--nodes is a whole number from 2 to 9, not three'],
    [['--users', '1.5'], '--users is a whole number from 2 to 100, not 1.5'],
    [['--mix', 'calm'], '--mix is usual, own or clocks, not calm'],
    [['--people', 'many'], '--people is all, plain or desk, not many'],
    [['--sekonds', '5'], "Unknown option '--sekonds'"],
  ])('%j is refused with what is wrong', (args, message) => {
    const parsed = parseOptions(args)
    expect(parsed.ok ? '' : parsed.message).toContain(message)
  })
})
