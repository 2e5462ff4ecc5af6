// Which tests there are. A job is one process of `bun test`: a file, or a group of scenarios on one composition.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Run, scenarioRuns } from '../../packages/server/test/scenarios/table.ts'
import { longVariable } from '../../packages/testkit/src/long.ts'
import { browserKindVariable } from '../browser.mjs'

export interface Job {
  /** The file's path; of scenarios also their composition and group. */
  readonly name: string
  readonly file: string
  readonly env: Readonly<Record<string, string>>
}

const scenarioFile = 'packages/server/test/scenarios/scenarios.test.ts'

/**
 * What people's browser does otherwise than the one without windows: devices, media, tabs and pages that go to sleep. Everything
 * else on a page is the same there, and pages are tested one after another.
 */
const isForBoth = ({ file }: Job) =>
  /^packages\/(client\/test\/media\/(calls|devices|hold|pages)|demo\/test\/calls)\.test\.ts$/.test(file)

/** The long form is for what the service does; which browser it is does not matter there. */
const inFullBrowser = (job: Job): Job => ({
  ...job,
  name: `${job.name} (full browser)`,
  env: { ...job.env, [browserKindVariable]: 'full', [longVariable]: '0' },
})

/**
 * The jobs of `npm test`, or of `npm run test:all`, whose names hold one of the words; the longest begin first. With
 * `bothBrowsers` some tests of pages run a second time, in the browser that people have.
 */
export function findJobs(
  root: string,
  run: Run,
  words: readonly string[],
  { bothBrowsers = false } = {},
): readonly Job[] {
  const files = ['scripts', 'packages', 'examples', 'site'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((file) => `${folder}/${file}`)
      .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules/') && file !== scenarioFile),
  )
  const jobs = files
    .filter((file) => run === 'all' || !file.endsWith('.long.test.ts'))
    .map((file): Job => ({ name: file, file, env: {} }))
  for (const { composition, group } of scenarioRuns(run)) {
    const name = `${scenarioFile} ${composition} ${group}`
    jobs.push({ name, file: scenarioFile, env: { RINGWIRE_TEST_SCENARIOS: `${composition} ${group}` } })
  }
  if (bothBrowsers) jobs.push(...jobs.filter(isForBoth).map(inFullBrowser))
  const chosen = jobs.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
  return chosen.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

/** Tests in a `test` folder run the service, a browser or a relay; the others need nothing but Bun. */
export function usesService({ file }: Job): boolean {
  return /^(packages\/[^/]+|examples|site)\/test\//.test(file)
}

const browserUses = [
  [
    'pages',
    /^(packages\/(server\/test\/operators|create-ringwire\/test\/create|client\/test\/(docs|media\/(background|firefox)|react)|demo\/test\/(backend|layout|looks|missed|people|presence)|ui\/test\/(autoplay|bundle|devices))|examples\/test\/(quickstart|callcenter)|site\/test)\b/,
  ],
  ['media', /^packages\/((demo|ui)\/test|client\/test\/(browser|media\/(?!engine\.test)))\b/],
] as const

/**
 * What a job is in a browser for. `media`: calls with sound and pictures, which want more than a core. `pages`: what only shows
 * something, waits for most of the time, or has another browser. One of each kind runs at a time.
 */
export function browserUse({ file }: Pick<Job, 'file'>): 'media' | 'pages' | undefined {
  return browserUses.find(([, files]) => files.test(file))?.[0]
}

/** A job that wants a core, and nobody's answer in time: any other job gets the core first. */
export function onlyComputes({ file }: Pick<Job, 'file'>): boolean {
  return /^packages\/([^/]+\/src\/|server\/test\/(model\/(mutants|explore)|simulation\/mutations\.long)\.test)/.test(
    file,
  )
}

/** What takes a minute or more begins first; what needs no service takes a moment. */
function rank(job: Job): number {
  if (
    browserUse(job) !== undefined ||
    /^packages\/server\/test\/(chaos|model|redis\/cluster|simulation|upgrade)\b/.test(job.file)
  )
    return 0
  // These wait for half a minute, and need nobody.
  if (/^(scripts\/test\/|packages\/server\/src\/services\/deadlines)/.test(job.file)) return 0
  return usesService(job) ? 1 : 2
}
