/** Groups of a product, for its backend: /v1/server/groups and what is below it [GROUP1]. */
import type { GroupPage } from '@ringwire/protocol/backend'
import { endpoints } from '@ringwire/protocol/endpoints'
import { empty, failure, json, shortened } from '../http/replies.ts'
import type { GroupName, Groups } from '../ports/groups.ts'
import { createProductEndpoint, type ProductEndpointDeps, type ProductRequest } from './endpoint.ts'
import { canBeName, readGroup, shownGroup, shownSummary } from './groups.ts'

export interface ServerGroupDeps extends ProductEndpointDeps {
  readonly groups: Groups
  /** The group has only these members by now: resolves when its calls ring at nobody else any more. */
  readonly leaveCalls: (name: GroupName, members: readonly string[]) => Promise<void>
}

const limits = { min: 1, default: 50, max: 100 }
const nameRule = 'A role and a group are 1 to 255 bytes of UTF-8 each, not blank, without NUL, and not "." or "..".'

export function createServerGroupEndpoints(deps: ServerGroupDeps) {
  const { groups, leaveCalls } = deps
  const nameOf = ({ product, params }: ProductRequest): GroupName => ({
    ...{ product, role: params.role ?? '', name: params.group ?? '' },
  })

  return {
    serverGroups: createProductEndpoint(deps, async ({ product, query }) => {
      const limit = limitOf(query.get('limit'))
      const found = await groups.list({ product, ...placeOf(query.get('cursor')) }, limit + 1)
      const page = found.slice(0, limit)
      const last = found.length > limit ? page.at(-1) : undefined
      const next_cursor = last === undefined ? null : cursorOf(last)
      return json(200, { success: true, data: page.map(shownSummary), next_cursor } satisfies GroupPage)
    }),
    serverGroup: createProductEndpoint(deps, async (asked) => {
      const group = isName(asked) ? await groups.get(nameOf(asked)) : undefined
      return group === undefined ? noSuchGroup(asked) : json(200, shownGroup(group))
    }),
    serverGroupPut: createProductEndpoint(
      deps,
      async (asked) => {
        if (!isName(asked)) return failure('INVALID_REQUEST_BODY', { message: nameRule })
        const read = readGroup(nameOf(asked), asked.body)
        if (!read.ok) return failure('INVALID_REQUEST_BODY', { message: read.message })
        await groups.put(read.group)
        await leaveCalls(read.group, read.group.members)
        return json(200, shownGroup(read.group))
      },
      endpoints.serverGroupPut.maxBodyBytes,
    ),
    serverGroupRemove: createProductEndpoint(deps, async (asked) => {
      if (!isName(asked)) return noSuchGroup(asked)
      const isGone = await groups.remove(nameOf(asked))
      // Also where it was removed before, and its calls could not be reached then.
      await leaveCalls(nameOf(asked), [])
      return isGone ? empty(204) : noSuchGroup(asked)
    }),
  }
}

const isName = ({ params }: ProductRequest) => canBeName(params.role ?? '') && canBeName(params.group ?? '')

/** A text that is not a number of records means the default, as in the history [HIST1]. */
function limitOf(text: string | null): number {
  const limit = Math.floor(Number(text ?? ''))
  return text === null || !(limit >= limits.min) ? limits.default : Math.min(limit, limits.max)
}

type GroupPlace = Pick<GroupName, 'role' | 'name'>
const first: GroupPlace = { role: '', name: '' }

function cursorOf({ role, name }: GroupPlace): string {
  return Buffer.from(JSON.stringify([role, name])).toString('base64url')
}

/** A text that is not a cursor means the first page. */
function placeOf(cursor: string | null): GroupPlace {
  if (cursor === null) return first
  try {
    const [role, name]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof role === 'string' && typeof name === 'string' && canBeName(role) && canBeName(name))
      return { role, name }
  } catch {}
  return first
}

const noSuchGroup = ({ product, params }: ProductRequest) =>
  failure('NOT_FOUND', {
    message: `The product ${product} has no group ${shortened(params.group ?? '')} of role ${shortened(params.role ?? '')}.`,
  })
