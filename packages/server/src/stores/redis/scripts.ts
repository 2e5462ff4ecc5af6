import { readFileSync } from 'node:fs'
import { Cluster, type Redis } from 'ioredis'
import { packageRoot } from '../../config/package-root.ts'
import { StoreError } from '../../ports/store-error.ts'
import { storeError } from './deadlines.ts'
import { type Client, mastersOf, refreshed } from './servers.ts'

/** The answers of scripts: texts and numbers, and lists of texts. */
export type Reply = (string | number | string[])[]

const scriptNames = [
  'claim',
  'consume',
  'maker',
  'nodes',
  'post',
  'refund',
  'renew',
  'row',
  'rows',
  'said',
  'save',
  'wakes',
  'written',
] as const
export type ScriptName = (typeof scriptNames)[number]

export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<Reply>

/** Runs scripts by their names, over keys of one slot. Each server gets them when it is there. */
export function createScripts(
  client: Client,
  within: <T>(send: () => Promise<T>) => Promise<T>,
  onError: (error: unknown) => void,
): RunScript {
  const scripts = readScripts()
  const gather = createGathering(client)
  client.on(
    'ready',
    () =>
      void load().catch((cause) => {
        // A connection that ended meanwhile is reported as such, and loads them when it is there again.
        if (client.status === 'ready') onError(storeError(cause))
      }),
  )

  async function load(): Promise<void> {
    for (const server of mastersOf(client)) for (const { text } of scripts.values()) await server.script('LOAD', text)
  }

  /** In full where its server does not know it: one that has just started. */
  async function sendScript({ sha, text }: Script, keys: readonly string[], args: readonly (string | number)[]) {
    gather()
    try {
      return (await within(() => client.evalsha(sha, keys.length, ...keys, ...args))) as Reply
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return (await within(() => client.eval(text, keys.length, ...keys, ...args))) as Reply
    }
  }

  return async (name, keys, args) => {
    const script = scripts.get(name)
    if (script === undefined) throw new Error(`no script ${name}`)
    const send = () => sendScript(script, keys, args)
    return send().catch(async (error) => {
      // A cluster's client that lost a connection asks any server, and does not look by itself where the slot is.
      if (!(client instanceof Cluster && error instanceof StoreError && error.message === 'MOVED')) throw error
      await within(() => refreshed(client))
      return send()
    })
  }
}

/**
 * What one tick sends goes in one write: a write costs more than most scripts do. A cluster's client does so by itself (`connect.ts`).
 */
function createGathering(client: Client): () => void {
  if (client instanceof Cluster) return () => {}
  let gathering: Redis['stream'] | undefined
  return () => {
    const { stream } = client
    if (client.status !== 'ready' || stream === gathering) return
    gathering = stream
    stream.cork()
    process.nextTick(() => {
      gathering = undefined
      stream.uncork()
    })
  }
}

interface Script {
  readonly text: string
  readonly sha: string
}

function readScripts(): Map<ScriptName, Script> {
  return new Map(
    scriptNames.map((name) => {
      const text = readFileSync(new URL(`src/stores/redis/lua/${name}.lua`, packageRoot), 'utf8')
      return [name, { text, sha: new Bun.CryptoHasher('sha1').update(text).digest('hex') }]
    }),
  )
}
