import { expect, test } from 'bun:test'
import { block } from '@ringwire/testkit/documents'
import { play } from './transcripts.ts'

/* `npx bun packages/server/test/documents/write.ts` puts into the page what the service says now. */

test('docs/base-clients.md shows what the service says', async () => {
  for (const [title, text] of await play()) {
    expect({ title, text: block('docs/base-clients.md', 'text', `\n### ${title}\n`) }).toEqual({ title, text })
  }
}, 240_000)
