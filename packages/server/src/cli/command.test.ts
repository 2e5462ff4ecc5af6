import { expect, test } from 'bun:test'
import { printJson, printTable, type Surroundings, visible } from './command.ts'

function printed(print: (surroundings: Surroundings) => void): string {
  let out = ''
  const write = (text: string) => {
    out += text
  }
  print({ out: write } as Surroundings)
  return out
}

/** Clears the screen, writes a title, goes back a line, turns the text around. */
const hostile = 'ann\u001b[2J\u009b1A\u001b]0;owned\u0007\r\n\u202eben\u2028'

test('an id that would move the cursor of a terminal is shown escaped, in tables and in JSON', () => {
  const table = printed((to) =>
    printTable(
      to,
      ['USER', 'N'],
      [
        [hostile, '1'],
        ['ben', '2'],
      ],
    ),
  )
  const json = printed((to) => printJson(to, { user: hostile, list: [hostile] }))
  for (const text of [table, json]) {
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028]/u)
    expect(text).toContain('ann\\u001b[2J\\u009b1A')
  }
  expect(table.split('\n')).toHaveLength(4)
  expect(JSON.parse(json)).toEqual({ user: hostile, list: [hostile] })
})

test('what people write is left as it is', () => {
  for (const text of ['Änn Ü. 山田', 'o\'brien "x" \\ 100 %', '👩‍⚕️'.replaceAll('\u200d', '')])
    expect(visible(text)).toBe(text)
})

test('in a terminal columns are as wide as they look, and a tone is for a whole cell', () => {
  const paint = (tone: string, text: string) => `<${tone}>${text}</>`
  const lines: string[] = []
  printTable(
    { out: (text) => lines.push(text), terminal: { paint } },
    ['USER', 'STATE'],
    [
      ['山', 'on'],
      ['ben', 'on it'],
    ],
    { on: 'good' },
  )
  expect(lines.join('')).toBe(
    '<strong>USER</>  <strong>STATE</>\n<dim>────  ─────</>\n山    <good>on</>\nben   on it\n',
  )
})
