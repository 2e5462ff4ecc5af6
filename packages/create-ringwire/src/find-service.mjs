/**
 * Finds the service that runs on this machine, the command that goes with it, and whether that command sees its data.
 *
 *   findService({ service, env, cwd })  → { url, dataDir, command, hasDatabase }, or undefined where none runs
 *
 * `dataDir` is undefined where the data was not found: `ringwire keys create` would begin new data there, which the service
 * does not know.
 */
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { UsageError } from './arguments.mjs'

const usualUrl = 'http://127.0.0.1:8080'
/** How long something may take to answer before it counts as away. In ms. */
const patienceMs = 3_000

export async function findService({ service, env, cwd }) {
  if (service === undefined) return searched({ env, cwd })
  if (/^https?:\/\//i.test(service)) return named(service, { env, cwd })
  const folder = resolve(cwd, service)
  const found = runningIn([join(folder, 'data'), folder])
  if (found === undefined || !(await answers(found.url))) throw new UsageError(`No service runs in ${folder}.`)
  return { ...found, command: findCommand([folder, cwd], env), hasDatabase: false }
}

async function searched({ env, cwd }) {
  const found = runningIn(dataDirs(env, cwd))
  const url = found?.url ?? usualUrl
  if (!(await answers(url))) return undefined
  return { url, dataDir: found?.dataDir, command: findCommand([cwd], env), hasDatabase: false }
}

/** By its URL: its data is what the environment and the current folder say, where a service with that URL uses it. */
async function named(text, { env, cwd }) {
  if (!URL.canParse(text)) throw new UsageError(`--service is no URL and no folder: ${text}`)
  const url = new URL(text).href.replace(/\/+$/, '')
  if (!(await answers(url))) throw new UsageError(`No service answers at ${url}.`)
  const found = runningIn(dataDirs(env, cwd))
  const dataDir = found !== undefined && found.url === url ? found.dataDir : undefined
  // Many an application has a DATABASE_URL of its own: it counts only for a service that was named.
  return { url, dataDir, command: findCommand([cwd], env), hasDatabase: Boolean(env.DATABASE_URL) }
}

const dataDirs = (env, cwd) => [
  ...(env.RINGWIRE_DATA_DIR ? [resolve(cwd, env.RINGWIRE_DATA_DIR)] : []),
  ...[join(cwd, 'data'), cwd],
]

/** The service writes where it listens into its data directory, after its process ID. */
function runningIn(dirs) {
  for (const dataDir of dirs) {
    const file = join(dataDir, 'serve.url')
    if (!existsSync(file)) continue
    const [, pid, url] = /^([1-9]\d{0,9}) (https?:\/\/[^\s/]+)\n$/.exec(readFileSync(file, 'utf8')) ?? []
    if (pid !== undefined && isRunning(Number(pid))) return { dataDir, url }
  }
  return undefined
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Whether it is Ringwire that answers: only Ringwire refuses a request without a product key like this. */
async function answers(url) {
  try {
    const response = await fetch(`${url}/v1/server/product`, {
      signal: AbortSignal.timeout(patienceMs),
      redirect: 'error',
    })
    return response.status === 401 && typeof (await response.json()).error?.code === 'string'
  } catch {
    return false
  }
}

/** As npm puts it into folders, those above included, and then as a shell finds it. */
function findCommand(folders, env) {
  const near = folders.flatMap((folder) =>
    [...upward(folder)].map((it) => join(it, 'node_modules', '.bin', 'ringwire')),
  )
  const onPath = (env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, 'ringwire'))
  return [...near, ...onPath].find(isProgram)
}

function* upward(folder) {
  for (let at = folder; ; at = dirname(at)) {
    yield at
    if (at === dirname(at)) return
  }
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
