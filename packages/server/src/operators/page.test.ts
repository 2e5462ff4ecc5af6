import { expect, test } from 'bun:test'
import { createPage } from './page.ts'

test('[ADM2] a file of the page that could not be made is made by the next request, and then kept', async () => {
  const left = ['fails', 'works']
  const page = createPage(async () => {
    const next = left.shift()
    if (next !== 'works') throw new Error('it cannot be made')
    return 'the page'
  })
  const ask = async () => (await page(new Request('http://127.0.0.1/admin/'), ''))?.text()
  expect(await ask().catch((error) => error.message)).toBe('it cannot be made')
  expect(await ask()).toBe('the page')
  expect(await ask()).toBe('the page')
})
