/** @jsxImportSource preact */
import type { GroupPage, GroupShown } from '@ringwire/protocol/backend'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, Refused, textOf } from './ask.ts'
import {
  bounds,
  changesOf,
  type Draft,
  draftOf,
  type GroupStrategy,
  isMoved,
  newDraft,
  range,
  readDraft,
} from './group-draft.ts'
import { useAsked } from './hooks.ts'
import { Choice, Do, Problem } from './parts.tsx'
import { productPath } from './products.ts'
import { plural } from './wording.ts'

type Place = Pick<GroupShown, 'role' | 'group'>

const pathOf = (product: string, { role, group }: Place) => productPath(product, 'groups', role, group)

/** The groups of a product: made, changed, renamed and removed [GROUP1]. */
export function Groups({ product }: { product: string }) {
  const [pages, setPages] = useState(1)
  const { data, problem, again } = useAsked(`groups ${pages}`, () => listGroups(product, pages))
  return (
    <section class="panel" data-testid="groups">
      <h2>Groups</h2>
      <Problem text={problem} />
      {data?.groups.length === 0 && <p class="soft">There is none.</p>}
      <ul class="list">
        {data?.groups.map(({ role, group, member_count: members, strategy, ring_ms: ringMs }) => (
          <li key={`${role}/${group}`}>
            <div class="any">
              <strong>
                {role}/{group}
              </strong>{' '}
              <span class="soft">
                {plural(members, 'member')}, {strategy.replaceAll('_', ' ')}, rings {ringMs / 1_000} s
              </span>
            </div>
            <div class="row">
              <EditGroup product={product} place={{ role, group }} onSaved={again} />
              <Do
                label="Remove"
                question={`Remove the group ${role}/${group}? Calls that ring at it end.`}
                act={async () => {
                  await ask(pathOf(product, { role, group }), { method: 'DELETE' })
                  again()
                }}
              />
            </div>
          </li>
        ))}
      </ul>
      <div class="row">
        <EditGroup product={product} onSaved={again} />
        {data?.isMore && (
          <button type="button" onClick={() => setPages(pages + 1)}>
            More groups
          </button>
        )}
      </div>
    </section>
  )
}

async function listGroups(product: string, pages: number) {
  const groups: GroupPage['data'] = []
  let cursor: string | null = ''
  for (let page = 0; page < pages && cursor !== null; page++) {
    const found: GroupPage = await ask(productPath(product, 'groups'), { query: { cursor, limit: '100' } })
    groups.push(...found.data)
    cursor = found.next_cursor
  }
  return { groups, isMore: cursor !== null }
}

/** A button with the form of a new group, or of the one at `place`. */
function EditGroup({ product, place, onSaved }: { product: string; place?: Place; onSaved: () => void }) {
  const [before, setBefore] = useState<GroupShown>()
  const [draft, setDraft] = useState<Draft>()
  const [failed, setFailed] = useState<string>()

  async function open(): Promise<void> {
    setFailed(undefined)
    setDraft(place === undefined ? newDraft : undefined)
    if (place === undefined) return
    try {
      const found = await ask<GroupShown>(pathOf(product, place))
      setBefore(found)
      setDraft(draftOf(found))
    } catch (error) {
      setFailed(textOf(error))
    }
  }

  const read = draft && readDraft(draft)
  const said = read && (read.ok ? changesOf(before, read.group) : read.message)
  return (
    <Do
      label={place === undefined ? 'New group' : 'Edit'}
      confirm="Save"
      testId={place === undefined ? 'new-group' : 'edit-group'}
      question={place === undefined ? `Make a group of ${product}.` : `Change the group ${place.role}/${place.group}.`}
      isDangerous={false}
      isReady={read?.ok === true}
      onOpen={() => void open()}
      act={async () => {
        if (!read?.ok) return
        await save(product, before, read.group)
        onSaved()
      }}
    >
      <Problem text={failed} />
      {draft && <Fields draft={draft} change={(changes) => setDraft({ ...draft, ...changes })} />}
      {said !== undefined && (
        <p class="soft" role="status" data-testid="group-says">
          {said}
        </p>
      )}
    </Do>
  )
}

/** Never replaces a group that the operator has not seen. A rename makes the new group before it removes the old one. */
async function save(product: string, before: GroupShown | undefined, after: GroupShown): Promise<void> {
  const { role, group, ...body } = after
  const now = await find(product, after)
  const isNew = before === undefined || isMoved(before, after)
  if (isNew && now !== undefined) throw new Error(`There is a group ${role}/${group} already. Edit that one.`)
  if (!isNew && JSON.stringify(now) !== JSON.stringify(before))
    throw new Error('Somebody has changed this group meanwhile. Close this, and edit it again.')
  await ask(pathOf(product, after), { method: 'PUT', body })
  if (before !== undefined && isNew) await ask(pathOf(product, before), { method: 'DELETE' })
}

async function find(product: string, place: Place): Promise<GroupShown | undefined> {
  try {
    return await ask<GroupShown>(pathOf(product, place))
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  }
}

const words: Readonly<Record<GroupStrategy, string>> = {
  all: 'all at once',
  in_turn: 'one after another, in the order of the list',
  longest_idle: 'one after another, the longest idle first',
}
const strategies = Object.keys(words) as GroupStrategy[]

function Fields({ draft, change }: { draft: Draft; change: (changes: Partial<Draft>) => void }) {
  const first = useRef<HTMLInputElement>(null)
  // The dialog is open before the group was read.
  useEffect(() => first.current?.focus(), [])
  const text = (name: 'role' | 'group' | 'memberRing' | 'ring', label: string) => (
    <label>
      {label}
      <input
        ref={name === 'role' ? first : null}
        value={draft[name]}
        inputMode={name === 'memberRing' || name === 'ring' ? 'decimal' : 'text'}
        data-testid={`group-${name}`}
        onInput={({ currentTarget }) => change({ [name]: currentTarget.value })}
      />
    </label>
  )
  return (
    <>
      {text('role', 'Role of its members')}
      {text('group', 'Name')}
      <label>
        Members: one user id a line, in the order of their turns
        <textarea
          rows={6}
          value={draft.members}
          spellcheck={false}
          data-testid="group-members"
          onInput={({ currentTarget }) => change({ members: currentTarget.value })}
        />
      </label>
      <Choice
        label="Members ring"
        value={draft.strategy}
        values={strategies}
        words={words}
        onChange={(strategy) => change({ strategy })}
        testId="group-strategy"
      />
      {draft.strategy !== 'all' && text('memberRing', `A member rings, in seconds (${range(bounds.memberRingMs)})`)}
      {text('ring', `A call rings in all, in seconds (${range(bounds.ringMs)})`)}
    </>
  )
}
