import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deploy } from './compose.ts'

const root = join(deploy, '..')

/** What a Dockerfile makes. */
export interface Image {
  /** Its files: the root of a container. */
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
  readonly user: number
  readonly entrypoint: readonly string[]
  readonly defaultArgs: readonly string[]
  /** The command of HEALTHCHECK. */
  readonly healthcheck: readonly string[]
}

interface Stage {
  readonly name: string
  readonly directory: string
  workdir: string
}

/** What the ignore file lets through: of the patterns that match a path or a folder of it the last one counts. */
export function contextOf(paths: readonly string[], ignoreFile: string): string[] {
  const patterns = ignoreFile.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return paths.filter((path) => {
    const parts = path.split('/')
    const folders = parts.map((_, i) => parts.slice(0, i + 1).join('/'))
    let isIgnored = false
    for (const pattern of patterns) {
      const isException = pattern.startsWith('!')
      const glob = new Bun.Glob(isException ? pattern.slice(1) : pattern)
      if (folders.some((folder) => glob.match(folder))) isIgnored = !isException
    }
    return !isIgnored
  })
}

function filesOfRepository(): string[] {
  const git = ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate']
  const { stdout, success, stderr } = Bun.spawnSync(git, { cwd: root })
  if (!success) throw new Error(stderr.toString())
  return stdout.toString().split('\0').filter(Boolean)
}

/** Runs the instructions of deploy/Dockerfile: each stage is a directory, and its commands run in it with the programs of this machine. */
export function buildImage(directory: string): Image {
  const context = contextOf(filesOfRepository(), readFileSync(join(deploy, 'Dockerfile.dockerignore'), 'utf8'))
  const stages: Stage[] = []
  const environment: Record<string, string> = {}
  const lists: Record<string, string[]> = {}
  let user = 0
  const text = readFileSync(join(deploy, 'Dockerfile'), 'utf8').replaceAll(/ \\\n\s*/g, ' ')
  for (const line of text.split('\n')) {
    const [, instruction = '', rest = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? []
    const stage = stages.at(-1)
    if (instruction === 'FROM') {
      const name = / AS (\w+)$/.exec(rest)?.[1] ?? 'last'
      stages.push({ name, directory: join(directory, name), workdir: '/' })
      mkdirSync(join(directory, name), { recursive: true })
    } else if (instruction === '' || stage === undefined) continue
    else if (instruction === 'WORKDIR') stage.workdir = rest
    else if (instruction === 'COPY') copy(rest, stage, stages, context)
    else if (instruction === 'RUN') run(rest, stage)
    else if (instruction === 'ENV')
      for (const pair of rest.split(' '))
        environment[pair.slice(0, pair.indexOf('='))] = pair.slice(pair.indexOf('=') + 1)
    else if (instruction === 'USER') user = Number.parseInt(rest, 10)
    else if (instruction === 'HEALTHCHECK') lists[instruction] = JSON.parse(rest.slice(rest.indexOf('[')))
    else if (instruction === 'ENTRYPOINT' || instruction === 'CMD') lists[instruction] = JSON.parse(rest)
    else if (instruction !== 'EXPOSE') throw new Error(`the tests do not know ${instruction}`)
  }
  if (!text.includes('\nFROM scratch\n')) throw new Error('the image has more than what the Dockerfile copies')
  const { ENTRYPOINT: entrypoint = [], CMD: defaultArgs = [], HEALTHCHECK: healthcheck = [] } = lists
  return { directory: stages.at(-1)?.directory ?? directory, environment, user, entrypoint, defaultArgs, healthcheck }
}

function copy(rest: string, stage: Stage, stages: readonly Stage[], context: readonly string[]): void {
  const words = rest.split(' ').filter((word) => !word.startsWith('--'))
  const option = (name: string) => new RegExp(`--${name}=(\\S+)`).exec(rest)?.[1]
  const target = words.at(-1) ?? ''
  const to = (path: string) => join(stage.directory, target.startsWith('/') ? '' : stage.workdir, path)
  if (option('from') !== undefined) {
    const from = stages.find(({ name }) => name === option('from'))
    if (from === undefined) throw new Error(`no stage for COPY ${rest}`)
    const owner = option('chown') ?? '0:0'
    mkdirSync(to(target), { recursive: true })
    // A directory is copied as what is in it.
    shell(`cp -a '${join(from.directory, words[0] ?? '')}/.' '${to(target)}' && chown -R ${owner} '${to(target)}'`, '/')
    return
  }
  for (const source of words.slice(0, -1)) {
    const files = context.filter((path) => path === source || path.startsWith(`${source}/`))
    if (files.length === 0) throw new Error(`COPY ${source}: there is nothing`)
    for (const file of files) {
      const path = target.endsWith('/')
        ? join(target, file.split('/').at(-1) ?? '')
        : join(target, file.slice(source.length))
      cpSync(join(root, file), to(path))
    }
  }
}

function run(command: string, { directory, workdir }: Stage): void {
  // The packages that it installs are here: scripts/system.mjs.
  if (command === 'apt-get update && apt-get install -y --no-install-recommends busybox-static') return
  const cwd = join(directory, workdir)
  mkdirSync(cwd, { recursive: true })
  shell(command, cwd)
}

function shell(command: string, cwd: string): void {
  // As in a container: nothing of the npm that perhaps runs these tests.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$)/.test(name))
  const { success, stdout, stderr } = Bun.spawnSync(['sh', '-ec', command], { cwd, env: Object.fromEntries(own) })
  if (!success) throw new Error(`${command}\n${stdout}${stderr}`)
}
