import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { deploy } from './compose.ts'

const root = join(deploy, '..')

/** An image, but for the system below it: its files below a directory, and how a process of it is started. */
export interface Image {
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
  readonly user: number
  /** ENTRYPOINT with arguments. */
  command(args: readonly string[]): string[]
  readonly defaultArgs: readonly string[]
  /** A path or a command of the image as it is here. */
  here(text: string): string
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

/** Runs the instructions of deploy/Dockerfile below a directory, where Docker would run them below a root of their own. */
export function buildImage(directory: string): Image {
  const context = contextOf(filesOfRepository(), readFileSync(join(deploy, 'Dockerfile.dockerignore'), 'utf8'))
  const stages: Stage[] = []
  const environment: Record<string, string> = {}
  const lists: Record<string, string[]> = {}
  let user = 0
  for (const line of readFileSync(join(deploy, 'Dockerfile'), 'utf8').split('\n')) {
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
    else if (instruction === 'ENTRYPOINT' || instruction === 'CMD') lists[instruction] = JSON.parse(rest)
    else if (instruction !== 'EXPOSE') throw new Error(`the tests do not know ${instruction}`)
  }
  const last = stages.at(-1)?.directory ?? directory
  const here = (text: string) => text.replaceAll(/(?<![\w.:/])\/(app|var\/lib\/ringwire)\b/g, `${last}/$1`)
  return {
    directory: last,
    environment: Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, here(value)])),
    user,
    command: (args) => [...(lists.ENTRYPOINT ?? []).map(here), ...args],
    defaultArgs: lists.CMD ?? [],
    here,
  }
}

function copy(rest: string, stage: Stage, stages: readonly Stage[], context: readonly string[]): void {
  const words = rest.split(' ')
  const target = words.at(-1) ?? ''
  const to = (path: string) => join(stage.directory, target.startsWith('/') ? '' : stage.workdir, path)
  if (words[0]?.startsWith('--from=')) {
    const from = stages.find(({ name }) => name === words[0]?.slice('--from='.length))
    if (from === undefined) throw new Error(`no stage for COPY ${rest}`)
    mkdirSync(dirname(to(target)), { recursive: true })
    // Hard links: nothing of it is written to.
    shell(`cp -al '${join(from.directory, words[1] ?? '')}' '${to(target)}'`, from.directory)
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

/** Owners can be given by root alone. */
function run(command: string, { directory, workdir }: Stage): void {
  const isRoot = process.getuid?.() === 0
  const text = command.replaceAll(' /var/', ` ${directory}/var/`)
  const cwd = join(directory, workdir)
  mkdirSync(cwd, { recursive: true })
  shell(isRoot ? text : text.replaceAll(/ -[og] \d+/g, ''), cwd)
}

function shell(command: string, cwd: string): void {
  // As in a container: nothing of the npm that perhaps runs these tests.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$)/.test(name))
  const { success, stdout, stderr } = Bun.spawnSync(['sh', '-ec', command], { cwd, env: Object.fromEntries(own) })
  if (!success) throw new Error(`${command}\n${stdout}${stderr}`)
}
