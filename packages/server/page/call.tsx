/** @jsxImportSource preact */
import type { CallShown, CallView, TimelineShown } from '@ringwire/protocol/backend'
import { useState } from 'preact/hooks'
import { ask } from './ask.ts'
import { EndCall } from './calls.tsx'
import { useAsked } from './hooks.ts'
import { Head, Person, Problem, Status } from './parts.tsx'
import { linkTo } from './place.ts'
import { productPath } from './products.ts'
import { Quality } from './quality.tsx'
import { Timeline } from './timeline.tsx'
import { TransferCall } from './transfer.tsx'
import { duration, time } from './wording.ts'

interface Shown {
  readonly timeline: TimelineShown
  readonly call: CallView | null
}

const pollMs = 3_000

/** One call: what became of it, what happened in it, and how its media was. */
export function CallDetail({ product, id }: { product: string; id: string }) {
  const [isOver, setOver] = useState(false)
  const { data, problem, again } = useAsked(
    `${product} ${id}`,
    async (): Promise<Shown> => {
      const timeline = await ask<TimelineShown>(productPath(product, 'calls', id, 'timeline'))
      const shown =
        timeline.call === null
          ? undefined
          : await ask<CallShown>(productPath(product, 'calls', timeline.call.call_uuid))
      // A call that is over still gets entries: webhooks, and what other nodes have seen.
      setOver(timeline.call === null || Date.now() - Date.parse(timeline.call.ended_at ?? '9999') > 60_000)
      return { timeline, call: shown?.call ?? null }
    },
    isOver ? undefined : pollMs,
  )
  return (
    <>
      <p>
        <a href={linkTo(['calls', product])}>Calls</a> <span class="soft">of {product}</span>
      </p>
      <Head title={`Call ${id.slice(0, 8)}`}>
        {data?.call && (
          <div class="row">
            <Status call={data.call} />
            {isAnswered(data.call) && <TransferCall product={product} call={data.call} onBegun={again} />}
            {data.call.ended_at === null && <EndCall product={product} call={data.call} onEnded={again} />}
          </div>
        )}
      </Head>
      <Problem text={problem} />
      {data && <Told product={product} {...data} />}
    </>
  )
}

const isAnswered = ({ status }: CallView) => status === 'accepted' || status === 'connected'

function Told({ product, call, timeline: { entries, summary } }: Shown & { product: string }) {
  return (
    <>
      <p class="panel summary" data-testid="summary">
        {summary}
      </p>
      {call && <Facts product={product} call={call} />}
      <Timeline call={call} entries={entries} />
      {call?.quality && <Quality quality={call.quality} />}
      <details class="panel">
        <summary>Raw entries</summary>
        <pre class="mono scroll" data-testid="raw">
          {JSON.stringify({ call, entries }, null, 2)}
        </pre>
      </details>
    </>
  )
}

function Facts({ product, call }: { product: string; call: CallView }) {
  const facts: readonly (readonly [name: string, value: preact.ComponentChildren])[] = [
    ['Caller', <Person key="caller" product={product} who={call.caller} />],
    ['Callee', <Person key="callee" product={product} who={call.callee} />],
    ['Context', `${call.context_type}/${call.context_id}`],
    ['Type', call.call_type],
    ['Started', time(call.started_at)],
    ['Rang', duration(call.started_at, call.accepted_at ?? call.ended_at)],
    ['Media after', call.connected_at === null ? '–' : duration(call.accepted_at, call.connected_at)],
    ['Talked', duration(call.accepted_at, call.ended_at)],
    ['End', call.end_reason ?? '–'],
    ['By', call.by === null ? '–' : `${call.by.role}/${call.by.user_id}`],
    ['Id', <code key="id">{call.call_uuid}</code>],
    ['Metadata', call.metadata === null ? '–' : <code key="metadata">{JSON.stringify(call.metadata)}</code>],
    ...(call.transferred_from
      ? ([
          [
            'Transferred from',
            <a key="from" class="mono" href={linkTo(['calls', product, call.transferred_from])}>
              {call.transferred_from.slice(0, 8)}
            </a>,
          ],
        ] as const)
      : []),
  ]
  return (
    <dl class="panel facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
