import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/*
 * Ports below those that the system gives out for "any", as for each connection: nobody gets one of them by chance before
 * it is used; and above 10080, the last one that browsers refuse. Each process begins somewhere else, and gives none out
 * twice until it has been through them all.
 */
const first = 10_100
const end = Math.max(firstGivenOut(), first + 1_000)
let next = first + ((process.pid * 97) % (end - first))

/** A TCP port that was free a moment ago. */
export async function freePort(): Promise<number> {
  return firstFree(async (port) => {
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
    await new Promise((resolve) => {
      server.close(resolve)
    })
  })
}

/** The same for UDP. */
export async function freeUdpPort(): Promise<number> {
  return firstFree(async (port) => (await Bun.udpSocket({ hostname: '127.0.0.1', port })).close())
}

async function firstFree(take: (port: number) => Promise<void>): Promise<number> {
  for (let tries = first; tries < end; tries++) {
    const port = next
    next = next + 1 < end ? next + 1 : first
    try {
      await take(port)
      return port
    } catch {
      // Somebody has it.
    }
  }
  throw new Error('no port is free')
}

function firstGivenOut(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)[0])
  } catch {
    // Of systems other than Linux.
    return 49_152
  }
}
