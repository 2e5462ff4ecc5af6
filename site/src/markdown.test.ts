import { expect, test } from 'bun:test'
import { anchorOf, rulesIn, withoutStyle } from './markdown.ts'

test('anchors are those of GitHub', () => {
  expect(['One turn of the event loop', '`POST /v1/call`', 'Who — and *how*?', '2. A_b-c'].map(anchorOf)).toEqual([
    'one-turn-of-the-event-loop',
    'post-v1call',
    'who--and-how',
    '2-a_b-c',
  ])
})

test('a rule is named where bold text begins with its id', () => {
  const rules = rulesIn('- **INV3 Again.** See [INV4].\n- **TAKE1** `call.take`\n- **Bold** INV5, **not INV6**')
  expect([...rules]).toEqual(['INV3', 'TAKE1'])
})

test('a drawing loads no style sheet', () => {
  expect(withoutStyle('<svg><style>\n@import url(x);\n</style><g/></svg>')).toBe('<svg><g/></svg>')
})
