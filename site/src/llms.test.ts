import { expect, test } from 'bun:test'
import { asMarkdown, llmsText, summaryOf } from './llms.ts'
import { findSite } from './pages.ts'

const texts: Readonly<Record<string, string>> = {
  'README.md': '# All\n\nCall signaling. More.\n\n[code](packages/x.ts)\n',
  'docs/guide/a.md':
    '# A\n\n<!-- Printed. -->\n\nContents: [one](#one)\n\n```\nno\n```\n\n**Decision.** Run `npm start` *and*\n[open](../../README.md) it. Then call.\n',
  'packages/x.ts': '',
}
const site = findSite(Object.keys(texts), (file) => texts[file] ?? '')

test('each document has its first sentence, with code and without links', () => {
  expect(summaryOf(texts['docs/guide/a.md'] ?? '')).toBe('Run `npm start` and open it.')
  expect(llmsText(site, '/book/')).toStartWith(
    '# Ringwire\n\n> Call signaling.\n\n## Guides\n\n- [Five minutes](/book/index.md): Call signaling.\n' +
      '- [A](/book/guide/a.md): Run `npm start` and open it.\n',
  )
})

test('links of a document lead to Markdown, and those to files to the page that shows the file', () => {
  const [readme, guide] = site.pages
  expect(readme && asMarkdown(site, readme, '/book/')).toContain('[code](/book/files/packages/x.ts.html)')
  expect(guide && asMarkdown(site, guide, '/book/')).toContain('[open](/book/index.md)')
})
