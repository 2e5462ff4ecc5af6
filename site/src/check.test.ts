import { expect, test } from 'bun:test'
import { brokenLinks } from './check.ts'

const check = (html: string) =>
  brokenLinks({
    base: '/book/',
    files: new Map([
      ['index.html', html],
      ['guide/a.html', '<h1 id="a-b" class="x">A</h1><strong id="INV3">'],
      ['icon.svg', ''],
    ]),
  })

test('links that lead somewhere are no problem', () => {
  const links = [
    '/book/',
    '/book/guide/a.html#a-b',
    './guide/a.html#INV3',
    '#here',
    'https://example.com/',
    'mailto:a@b',
  ]
  const html = `<p id="here">${links.map((href) => `<a class="x" href="${href}">x</a>`).join('')}`
  expect(check(`${html}<link rel="icon" href="/book/icon.svg"><img src="data:image/png;base64,AA==">`)).toEqual([])
})

test('a page, an anchor and a base that are not there, and files of other hosts, are named', () => {
  expect(
    check(
      '<a href="/book/gone.html">x</a><a href="/book/guide/a.html#gone">x</a><a href="#gone">x</a><a href="/a.html">x</a>' +
        '<img src="/book/gone.png"><script src="https://cdn.example.com/x.js"></script><link href="//fonts.example.com/">',
    ),
  ).toEqual([
    'index.html: /book/gone.html leads to no file',
    'index.html: /book/guide/a.html#gone leads to no anchor',
    'index.html: #gone leads to no anchor',
    'index.html: /a.html is outside /book/',
    'index.html: /book/gone.png leads to no file',
    'index.html: https://cdn.example.com/x.js is on another host',
    'index.html: //fonts.example.com/ is on another host',
  ])
})
