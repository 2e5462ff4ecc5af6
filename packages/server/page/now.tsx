/** @jsxImportSource preact */
import { useRef } from 'preact/hooks'
import { ask } from './ask.ts'
import { Chart } from './chart.tsx'
import { useAsked } from './hooks.ts'
import { Head, Problem, Scroll } from './parts.tsx'
import { type Trouble, Troubles } from './troubles.tsx'
import { count, plural, rate, seconds } from './wording.ts'

interface Point {
  readonly at: number
  readonly connections: number
  readonly calls: number
  readonly invites: number
  readonly relays: number
  readonly requests: number
  readonly errors: number
  readonly limited: number
  readonly ring_p50: number | null
  readonly connect_p50: number | null
  readonly commit_p95: number | null
  readonly loop_p95: number | null
}

interface Now {
  readonly at: string
  readonly health: {
    readonly ok: boolean
    readonly database: string
    readonly redis: string
    readonly service_ready: boolean
    readonly descriptors?: string
  }
  readonly troubles: readonly Trouble[]
  readonly nodes: readonly { readonly node: string; readonly sockets: number | null; readonly is_here: boolean }[]
  readonly connections: number
  readonly calls: {
    readonly age_bounds_s: readonly number[]
    readonly ringing: readonly number[]
    readonly accepted: readonly number[]
    readonly connected: readonly number[]
  }
  readonly recent: {
    readonly limited: Readonly<Record<string, number>>
    readonly failed: Readonly<Record<string, number>>
  }
  readonly points: readonly Point[]
}

const pollMs = 2_000
const keptPoints = 150

export function NowView() {
  const known = useRef<readonly Point[]>([])
  const { data, problem } = useAsked(
    'now',
    async () => {
      const since = known.current.at(-1)?.at ?? 0
      const now = await ask<Now>('now', { query: { since: String(since) } })
      known.current = [...known.current, ...now.points].slice(-keptPoints)
      return { ...now, points: known.current }
    },
    pollMs,
  )
  return (
    <>
      <Head title="Now">{data && <Health {...data.health} />}</Head>
      <Problem text={problem} />
      {data && <Troubles known={data.troubles} isOk={data.health.ok} />}
      {data && <Shown now={data} />}
    </>
  )
}

function Health({ ok, database, redis, service_ready: isReady, descriptors }: Now['health']) {
  return (
    <div class="row" data-testid="health">
      <State name="Service" state={isReady && ok ? 'ok' : isReady ? 'degraded' : 'not ready'} />
      <State name="Database" state={database} />
      <State name="Redis" state={redis} />
      {descriptors !== undefined && <State name="File descriptors" state="run out" />}
    </div>
  )
}

function State({ name, state }: { name: string; state: string }) {
  const tone = state === 'ok' ? 'good' : state === 'unchecked' ? undefined : 'bad'
  return (
    <span class="badge" data-tone={tone}>
      {name}: {state}
    </span>
  )
}

/** A node does not know the figures of the others: nobody should take these for those of all. */
function FiguresOf({ nodes }: Pick<Now, 'nodes'>) {
  const here = nodes.filter((node) => node.is_here).map(({ node }) => node)
  const others = nodes.length - here.length
  return (
    <p class="soft" data-testid="figures-of">
      Charts and calls are those of {here.join(', ')}
      {others > 0 && ` only, not of ${plural(others, 'other node')}. Each node has its own page`}.
    </p>
  )
}

function Shown({ now: { points, calls, nodes, recent } }: { now: Now }) {
  const of = (key: keyof Point) => points.map((point) => point[key])
  const perSecond = (value: number) => `${rate(value)}/s`
  return (
    <>
      <FiguresOf nodes={nodes} />
      <div class="charts">
        <Chart name="Connections" values={of('connections')} say={count} />
        <Chart name="Live calls" values={of('calls')} say={count} />
        <Chart name="Invites" values={of('invites')} say={perSecond} />
        <Chart name="Errors" values={of('errors')} say={perSecond} isBad />
        <Chart name="Refused for a limit" values={of('limited')} say={perSecond} isBad />
        <Chart name="Ring until answer" values={of('ring_p50')} say={(value) => `≤ ${seconds(value)}`} />
        <Chart name="Answer until media" values={of('connect_p50')} say={(value) => `≤ ${seconds(value)}`} />
        <Chart name="Relays" values={of('relays')} say={perSecond} />
        <Chart name="Commit, 95 of 100" values={of('commit_p95')} say={(value) => `≤ ${seconds(value)}`} />
        <Chart name="Event loop late, 95 of 100" values={of('loop_p95')} say={(value) => `≤ ${seconds(value)}`} />
      </div>
      <div class="columns">
        <Calls calls={calls} />
        <Nodes nodes={nodes} />
        <Recent title="Limits hit in ten minutes" counts={recent.limited} none="Nothing was refused for a limit." />
        <Recent title="Errors in ten minutes" counts={recent.failed} none="The service has not failed at anything." />
      </div>
    </>
  )
}

function Calls({ calls }: Pick<Now, 'calls'>) {
  const bounds = calls.age_bounds_s
  const names = [...bounds.map((bound) => `under ${seconds(bound)}`), `${seconds(bounds.at(-1) ?? 0)} and more`]
  return (
    <section class="panel" data-testid="calls-by-age">
      <h2>Live calls by state and age</h2>
      <Scroll name="Live calls by state and age">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              {names.map((name) => (
                <th scope="col" class="number" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(['ringing', 'accepted', 'connected'] as const).map((status) => (
              <tr key={status}>
                <th scope="row">{status}</th>
                {calls[status].map((number, i) => (
                  <td class="number" key={names[i]}>
                    {number === 0 ? <span class="soft">0</span> : count(number)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}

function Nodes({ nodes }: Pick<Now, 'nodes'>) {
  return (
    <section class="panel" data-testid="nodes">
      <h2>{plural(nodes.length, 'node')}</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col" class="number">
              Sockets
            </th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(({ node, sockets, is_here: isHere }) => (
            <tr key={node}>
              <td>
                {node} {isHere && <span class="badge">this node</span>}
              </td>
              <td class="number">{sockets === null ? <span class="badge">takes nobody</span> : count(sockets)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Recent({ title, counts, none }: { title: string; counts: Readonly<Record<string, number>>; none: string }) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1])
  return (
    <section class="panel">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="soft">{none}</p>
      ) : (
        <table>
          <tbody>
            {rows.map(([name, number]) => (
              <tr key={name}>
                <td class="any">{name}</td>
                <td class="number">{count(number)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
