/**
 * The record of a call without one of its two participants [SRV2]. A blank user_id stands for an erased participant:
 * nobody can have it. Times, the role and the context stay; names, and whatever is free text, go.
 */
import type { Party, Side } from './call.ts'
import type { CallEvent, Notice, PeerNews } from './effects.ts'

/** The participant to erase, in a call that is known. */
export type Erased = Pick<Party, 'role' | 'userId'>

type Effects = Pick<CallEvent, 'notices' | 'moved' | 'peers' | 'note'>

/**
 * The effects of a transition, without a name, as they may still be delivered. A reason from a backend may name anybody.
 */
export function effectsWithout({ notices, moved, peers }: Effects, side: Side, who: Erased): Effects {
  const left = moved?.filter((move) => move.side !== side)
  return {
    notices: notices.map((notice) => noticeWithout(notice, side, who)),
    ...(left !== undefined && left.length > 0 && { moved: left }),
    ...(peers !== undefined && { peers: peers.map((news) => newsWithout(news, who)) }),
  }
}

/**
 * The same of somebody on neither side: the call rang there as at a member of a group, or this person transferred it. A
 * reason from a backend may name anybody.
 */
export function effectsWithoutOutsider({ notices, moved, peers }: Effects, who: Erased): Effects {
  return {
    notices: notices.map((notice) => noticeWithoutOutsider(notice, who)),
    ...(moved !== undefined && { moved }),
    ...(peers !== undefined && { peers }),
  }
}

function noticeWithoutOutsider(notice: Notice, who: Erased): Notice {
  const { to } = notice
  const { metadata, ...data } = notice.data as unknown as Fields
  const by = data.by as WireParty | null | undefined
  // It has no sessions any more that could be meant.
  const address = 'member' in to && to.member === who.userId ? { ...to, member: '', except: [] } : to
  return {
    ...notice,
    to: address,
    data: {
      ...data,
      // The metadata may come from the person who transferred the call.
      ...(metadata !== undefined && !isSame(data.transferred_by as WireParty | undefined, who) && { metadata }),
      ...(by && { by: partyWithout(by, who) }),
      ...originWithout(data, who),
    },
  } as unknown as Notice
}

/** Only what tells of a transfer names anybody: its target [XFER1]. */
function newsWithout(news: PeerNews, who: Erased): PeerNews {
  if (news.event !== 'call.transferring') return news
  return { ...news, data: { ...news.data, to: { display_name: null, ...partyWithout(news.data.to, who) } } }
}

function noticeWithout(notice: Notice, side: Side, who: Erased): Notice {
  const { metadata: _, ...data } = notice.data as unknown as Fields
  const by = data.by as WireParty | null | undefined
  return {
    ...notice,
    // It has no sessions any more that could be meant.
    to: side === 'callee' && notice.to.place === 'rung' ? { ...notice.to, except: [] } : notice.to,
    data: {
      ...data,
      ...(`${side}_user_id` in data && { [`${side}_user_id`]: '' }),
      // In notices it is always the caller's.
      ...(side === 'caller' && 'display_name' in data && { display_name: '' }),
      ...(by && { by: partyWithout(by, who) }),
      ...originWithout(data, who),
    },
  } as unknown as Notice
}

/** The participant who transferred a call is on neither of its sides [XFER1]. */
function originWithout({ transferred_by }: Fields, who: Erased): Fields {
  return transferred_by === undefined ? {} : { transferred_by: partyWithout(transferred_by as WireParty, who) }
}

type Fields = Readonly<Record<string, unknown>>
interface WireParty {
  readonly user_id: string | null
  readonly role: string
  readonly display_name?: string | null
}

const isSame = (party: WireParty | undefined, { userId, role }: Erased) =>
  party?.user_id === userId && party.role === role

function partyWithout(party: WireParty, who: Erased): WireParty {
  if (!isSame(party, who)) return party
  return { ...party, user_id: '', ...('display_name' in party && { display_name: null }) }
}

interface StoredHook {
  readonly data: Fields & {
    readonly caller?: WireParty
    readonly callee?: WireParty
    readonly by?: WireParty | null
    readonly member?: WireParty
    readonly quality?: Readonly<Record<Side, unknown>> | null
  }
}

/** The body of a webhook that is kept; undefined where it does not name who is erased. */
export function hookBodyWithout(body: string, who: Erased): string | undefined {
  const event = JSON.parse(body) as StoredHook
  const { caller, callee, by, member, quality, user_id, role } = event.data
  const isOf = (party: Fields) => party.user_id === who.userId && party.role === who.role
  if (caller === undefined || callee === undefined)
    return isOf({ user_id, role }) ? JSON.stringify({ ...event, data: { ...event.data, user_id: '' } }) : undefined
  const side = isOf(caller as unknown as Fields) ? 'caller' : isOf(callee as unknown as Fields) ? 'callee' : undefined
  // A member of a group that nobody answered for.
  const isMember = [by, member].some((party) => party != null && isOf(party as unknown as Fields))
  const isTransferrer = event.data.transferred_by !== undefined && isOf(event.data.transferred_by as Fields)
  const others = {
    by: by ? partyWithout(by, who) : by,
    ...(member !== undefined && { member: partyWithout(member, who) }),
    ...originWithout(event.data, who),
  }
  if (side === undefined && isMember) return JSON.stringify({ ...event, data: { ...event.data, ...others } })
  if (side === undefined && !isTransferrer) return undefined
  return JSON.stringify({
    ...event,
    data: {
      ...event.data,
      caller: partyWithout(caller, who),
      callee: partyWithout(callee, who),
      ...others,
      metadata: null,
      ...(quality && side && { quality: { ...quality, [side]: null } }),
    },
  })
}

/** The part of a body that names somebody of this user_id, as `hookBody` writes it. */
export const mentionOf = ({ userId }: Pick<Erased, 'userId'>) => `"user_id":${JSON.stringify(userId)}`
