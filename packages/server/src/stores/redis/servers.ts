import { Cluster, type Redis } from 'ioredis'
import { keysOnEach, slotOf } from './slots.ts'

export type Client = Redis | Cluster

/** Of a cluster's server; elsewhere there is one that takes writes. */
export type ServerAddress = { readonly host: string; readonly port: number } | 'primary'

export interface Master {
  readonly name: string
  /** Names what it has, and whose that was: another name where it was promoted, or began again. */
  readonly origin: string
  /** A key that it has; of that name there is one on each. */
  readonly marker: string
}

/** The servers that take writes. */
export function mastersOf(client: Client): Redis[] {
  return client instanceof Cluster ? client.nodes('master') : [client]
}

/** The name of the master that has the keys under a tag. */
export function masterOf(client: Client, tag: string): string {
  return client instanceof Cluster ? (client.slots[slotOf(tag)]?.[0] ?? '') : ''
}

export function serverOf(client: Client, tag: string): Redis | undefined {
  if (!(client instanceof Cluster)) return client
  const name = masterOf(client, tag)
  return client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === name)
}

const markerBegin = 'rw:w:'

/** The servers that take writes, each with its name and a key that it has. */
export function markersOf(client: Client, prefix: string): (readonly [server: Redis, name: string, marker: string])[] {
  if (!(client instanceof Cluster)) return [[client, '', `${markerBegin}0`]]
  const markers = keysOnEach(prefix + markerBegin, (slot) => client.slots[slot]?.[0])
  return client.nodes('master').flatMap((server) => {
    const name = `${server.options.host}:${server.options.port}`
    const marker = markers.get(name)
    // One that has no slots has nothing.
    return marker === undefined ? [] : [[server, name, marker.slice(prefix.length)] as const]
  })
}

export async function asMaster([server, name, marker]: readonly [Redis, string, string]): Promise<Master> {
  const text = await server.info('replication')
  return { name, marker, origin: /master_replid:(\w+)/.exec(text)?.[1] ?? '' }
}

/** Resolves when the cluster has said which server has which slots, or could not. */
export function refreshed(cluster: Cluster): Promise<void> {
  return new Promise((resolve) => cluster.refreshSlotsCache(() => resolve()))
}
