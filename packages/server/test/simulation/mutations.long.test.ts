import { afterAll, expect, test } from 'bun:test'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mutations, notFound } from './mutations.ts'

/** Is the simulation worth anything? Small breaks of the code that delivers have to show in few worlds. */

const world = { nodes: 3, users: 6, seconds: 60 }
const mostSeeds = 20
/** Of the unbroken service, beside the seeds by which breaks were found. */
const unbrokenSeeds = 8
/** Some break so much that a world does not come to an end. In ms. */
const limitMs = 600_000

const root = new URL('../../../../', import.meta.url).pathname
const dir = await mkdtemp(join(tmpdir(), 'ringwire-mutations-'))
const server = join(dir, 'packages/server')
for (const folder of ['src', 'test/simulation', 'test/chaos', 'test/fuzz'])
  await cp(join(root, 'packages/server', folder), join(server, folder), { recursive: true })
await symlink(join(root, 'node_modules'), join(dir, 'node_modules'))
afterAll(() => rm(dir, { recursive: true, force: true }))

interface Found {
  readonly seed: number
  readonly kind: string
}

/** The first seed that shows something; null where none does. */
async function firstFound(
  mix: 'usual' | 'own',
  people: 'plain' | 'all' | 'desk',
  from = 1,
  most = mostSeeds,
): Promise<Found | null> {
  const { nodes, users, seconds } = world
  const args = [...[nodes, users, seconds, from, from + most - 1].map(String), mix, people]
  const child = Bun.spawn([process.execPath, join(server, 'test/simulation/mutant.ts'), ...args], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs)
  const said = await new Response(child.stdout).text()
  clearTimeout(limit)
  const last = said.trim().split('\n').at(-1) ?? ''
  // It was ended in a world that does not come to an end.
  return last === 'null' || last.startsWith('{') ? (JSON.parse(last) as Found | null) : { seed: 0, kind: 'stuck' }
}

test.each(['plain', 'all', 'desk'] as const)(
  `what is not broken shows nothing within ${unbrokenSeeds} seeds, people: %s`,
  async (people) => {
    expect(await firstFound('usual', people, 1, unbrokenSeeds)).toBeNull()
  },
  2 * limitMs,
)

for (const { name, file, find, put, mix = 'usual', people, from } of mutations.filter(
  ({ name }) => !(name in notFound),
)) {
  test(
    `${name}: found within ${mostSeeds} seeds`,
    async () => {
      const path = join(server, 'src', file)
      const text = await readFile(path, 'utf8')
      await writeFile(
        path,
        text.replace(find, () => put),
      )
      const found = await firstFound(mix, people, from).finally(() => writeFile(path, text))
      console.log(`${name}: ${found === null ? 'not found' : `seed ${found.seed}, ${found.kind}`}`)
      expect(found).not.toBeNull()
      // It is the break that shows there.
      if (found !== null && found.seed > unbrokenSeeds) expect(await firstFound(mix, people, found.seed, 1)).toBeNull()
    },
    2 * limitMs,
  )
}
