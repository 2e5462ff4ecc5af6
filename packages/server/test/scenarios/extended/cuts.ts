import { soon } from '@ringwire/testkit/patience'
import type { Link, TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Phone } from './phones.ts'
import type { Random } from './random.ts'

/** What happens to connections; all but the first two cost the client its socket. */
const cutKinds = [
  'delay',
  'stall, then flow',
  'stall, then reset',
  'reset',
  'half-close to the service',
  'half-close to the client',
  'given up by the client',
] as const
export type CutKind = (typeof cutKinds)[number]

export interface Cuts {
  readonly counts: Record<CutKind, number>
  /** No more cuts from now on. */
  stop(): void
}

/**
 * Cuts every connection through the proxy sooner or later, each in a way of its own; later on a busy machine, where it takes
 * a client longer to be in: one that never is gets nothing done.
 */
export function startCuts(proxy: TcpProxy, phones: readonly Phone[], random: Random): Cuts {
  const counts = Object.fromEntries(cutKinds.map((kind) => [kind, 0])) as Record<CutKind, number>
  const timers = new Set<ReturnType<typeof setTimeout>>()
  let stopped = false

  function later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer)
  }

  function watch(link: Link): void {
    if (stopped) return
    link.delay(random.between(0, 5))
    later(soon(random.between(1, 400)), () => cut(link))
  }

  function cut(link: Link): void {
    if (stopped || !proxy.open.includes(link)) return
    const kind = random.pick(cutKinds)
    counts[kind]++
    const again = () => later(soon(random.between(1, 300)), () => cut(link))
    switch (kind) {
      case 'delay':
        link.delay(random.between(0, 40))
        again()
        break
      case 'stall, then flow':
        link.stall()
        later(random.between(10, 300), () => {
          link.flow()
          again()
        })
        break
      case 'stall, then reset':
        link.stall()
        // Now and then for so long that the service finds out by itself [WS6].
        later(random.next() < 0.05 ? 2_500 : random.between(10, 300), () => link.reset())
        break
      case 'reset':
        link.reset()
        break
      case 'half-close to the service':
        link.halfClose('server')
        break
      case 'half-close to the client':
        link.halfClose('client')
        break
      case 'given up by the client':
        link.stall()
        phones.find(({ client }) => client.localPort === link.clientPort)?.client.abandon()
        later(random.between(10, 500), () => link.reset())
    }
  }

  for (const link of proxy.open) watch(link)
  proxy.onLink = watch
  return {
    counts,
    stop() {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
      for (const link of proxy.open) {
        link.delay(0)
        link.flow()
      }
    },
  }
}
