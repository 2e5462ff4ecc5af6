import { expect, test } from 'bun:test'
import { references } from './contents.ts'
import { findSite, pathOf } from './pages.ts'
import { readProjectFile, readSite } from './project.ts'
import { sidebarOf } from './sidebar.ts'

const texts: Readonly<Record<string, string>> = {
  'README.md': '# All\n\n![x](docs/images/x.png) [decisions](docs/decisions/) [a](examples/a) [deploy](deploy)\n',
  'docs/client.md':
    '# `Client`\n\n[code](../packages/x.ts) [rules](protocol.md#order) [api](generated/api.json) [up](../README.md)\n\n```\n[no](../secret.txt)\n```\n',
  'docs/protocol.md': '# Rules\n',
  'docs/decisions/0001-a.md': '# 1. A\n',
  'docs/generated/api.json': '{}',
  'docs/images/x.png': '',
  'examples/a/README.md': '# A\n',
  'examples/a/start.mjs': '',
  'packages/x.ts': '',
  'packages/y.ts': '',
  'deploy/nginx.conf': '',
  'secret.txt': '',
}
const site = findSite(Object.keys(texts), (file) => texts[file] ?? '')

test('documents are pages, with their headings as titles', () => {
  expect(site.pages.map(({ path, title }) => [path, title])).toEqual([
    ['index', 'All'],
    ['client', 'Client'],
    ['protocol', 'Rules'],
    ['decisions/0001-a', '1. A'],
    ['examples/a', 'A'],
  ])
  expect(['SECURITY.md', 'packages/ui/README.md'].map(pathOf)).toEqual(['reporting', 'packages/ui'])
})

test('only what a document links to is shown, with all files of a folder that has no README', () => {
  expect(site.files).toEqual(['deploy/nginx.conf', 'packages/x.ts'])
  expect(site.folders).toEqual(['deploy', 'docs/decisions'])
  expect(site.assets).toEqual(['docs/generated/api.json', 'docs/images/x.png'])
})

test('a link leads to the page, the file or the list that it means', () => {
  const targets = (source: string, ...hrefs: string[]) => hrefs.map((href) => site.targetOf(source, href))
  expect(targets('docs/client.md', 'protocol.md#order', '../README.md', '#here', 'https://example.com/a.md')).toEqual([
    '/protocol.md#order',
    '/index.md',
    '#here',
    'https://example.com/a.md',
  ])
  expect(targets('docs/client.md', '../packages/x.ts', 'generated/api.json', '../examples/a/')).toEqual([
    '/files/packages/x.ts.md',
    '/generated/api.json',
    '/examples/a.md',
  ])
  expect(targets('README.md', 'docs/decisions/', 'deploy', 'docs/images/x.png')).toEqual([
    '/decisions/index.md',
    '/files/deploy/index.md',
    '/images/x.png',
  ])
})

test('every document and every page of the references stands in the sidebar', () => {
  const pages = [...readSite().pages, ...references(readProjectFile)]
  expect(pages.length).toBeGreaterThan(60)
  expect(() => sidebarOf(pages)).not.toThrow()
  expect(() => sidebarOf([...pages, { path: 'new', title: 'New' }])).toThrow('places no new')
})
