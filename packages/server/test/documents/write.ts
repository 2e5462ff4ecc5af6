// Puts the conversations of transcripts.ts into docs/base-clients.md, each in the block under its heading, and writes docs/vectors.
import { block, projectRoot, readDocument } from '@ringwire/testkit/documents'
import { play } from './transcripts.ts'
import { createVectors } from './vectors.ts'

const page = 'docs/base-clients.md'
let text = readDocument(page)
for (const [title, played] of await play()) {
  const heading = `\n### ${title}\n`
  const at = text.indexOf(heading)
  text = text.slice(0, at) + text.slice(at).replace(block(page, 'text', heading), () => played)
}
await Bun.write(`${projectRoot}/${page}`, text)

for (const [name, vectors] of await createVectors()) await Bun.write(`${projectRoot}/docs/vectors/${name}`, vectors)
