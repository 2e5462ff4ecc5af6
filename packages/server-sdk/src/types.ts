// Over 350 lines: it is the wire of one API, and it imports nothing.
/** The answers of the service, as they are on the wire. Times are ISO 8601, UTC. */

export type CallStatus = 'ringing' | 'accepted' | 'connected' | 'ended' | 'rejected' | 'cancelled' | 'missed' | 'busy'

/** Its user_id is null where a group was called, and nobody has accepted. */
export interface CalledParty {
  user_id: string | null
  role: string
  /** Known once the callee accepted. */
  display_name: string | null
  /** The group that was called. */
  group?: string
}

export interface CallParty {
  user_id: string
  role: string
  /** The callee's is known once it accepted. */
  display_name: string | null
}

export interface Call {
  call_uuid: string
  /** 1 for a new call, one more with every change. */
  version: number
  status: CallStatus
  /** Why the call is over; null before. */
  end_reason: string | null
  caller: CallParty
  callee: CalledParty
  call_type: string
  context_type: string
  context_id: string
  metadata: Record<string, unknown> | null
  started_at: string
  accepted_at: string | null
  connected_at: string | null
  ended_at: string | null
  /** Who brought the call into its status; null where time, a loss or a backend did. */
  by: { user_id: string; role: string } | null
  /** The call that this one was transferred from, by its uuid, and who transferred it. */
  transferred_from?: string
  transferred_by?: CallParty
  /** How the media was, of one call; null where nothing was reported. */
  quality?: CallQuality | null
  /** For how long each side had it on hold until now, of one call. */
  held?: CallHeld | null
}

/** In ms. */
export interface CallHeld {
  caller_ms: number
  callee_ms: number
}

export interface Range {
  min: number
  avg: number
  max: number
}

/** What one side reported of its media. */
export interface SideQuality {
  reports: number
  rtt_ms?: Range
  jitter_ms?: Range
  loss?: Range
  bitrate?: Range
  frames_dropped?: Range
  candidate_pair?: { local: string; remote: string }
  codec?: string
}

export interface CallQuality {
  caller: SideQuality | null
  callee: SideQuality | null
}

/** What happened to a call, or was seen of it. */
export interface TimelineEntry {
  at: string
  /** `invited`, `rung`, `push`, `socket_lost`, …: docs/backend.md lists them, and there may be more. */
  what: string
  who?: { user_id: string; role: string }
  device_id?: string
  session_id?: string
  detail: Record<string, unknown>
}

export interface Timeline {
  /** Null: an invite was refused before there was a call. */
  call: Call | null
  /** The earliest first, at most 500. */
  entries: TimelineEntry[]
  /** The outcome, in one sentence for people. */
  summary: string
}

/** An invite that was refused before there was a call; `entry.detail.code` says why. */
export interface RefusedInvite {
  call_uuid: string
  entry: TimelineEntry
}

export interface CallPage {
  data: Call[]
  /** Only if the filter says so: the participant's invites that were refused, the latest first. */
  refused?: RefusedInvite[]
  /** Give it as `cursor` for the next page; null on the last one. */
  next_cursor: string | null
}

/** `status`: `live` is every call that rings or goes on. `user_id` and `role` go together. */
export interface CallFilter {
  status?: 'live' | CallStatus
  user_id?: string
  role?: string
  /** Calls that started then or later. */
  since?: string | Date
  /**
   * Lists the participant's refused invites, too. Needs `user_id` and `role`, and excludes `status`. `limit` and the cursor
   * then count both together.
   */
  refused?: boolean
  /** 1 to 100 calls a page; 30 where it is not given. */
  limit?: number
  cursor?: string
}

export interface Session {
  session_id: string
  device_id: string | null
  connected_at: string
  extended: boolean
  /** From the token with which it connected; null if that has none. */
  app_version: string | null
}

/** A device that can be woken by a push. */
export interface Device {
  device_id: string
  platform: 'webpush' | 'fcm' | 'apns'
  registered_at: string
}

export interface ParticipantState {
  online: boolean
  sessions: Session[]
  devices: Device[]
  /** At most 100. */
  live_calls: Call[]
}

/** The counts of a participant's erasure. */
export interface ParticipantErased {
  /** Tokens of the participant that were issued before it do not count. */
  tokens_from: string
  calls: number
  devices: number
  timeline_entries: number
  webhook_deliveries: number
}

/** Everything that is kept of a participant. */
export interface ParticipantExport {
  user_id: string
  role: string
  exported_at: string
  tokens_from: string | null
  sessions: Session[]
  devices: Device[]
  /** Groups of its role that it is a member of. */
  groups: string[]
  /** Newest first; of each timeline the entries of the participant. */
  calls: { call: Call; entries: TimelineEntry[] }[]
  /** Invites that were refused before there was a call. */
  refused: RefusedInvite[]
  /** The changes to it, newest first: by an operator, by a backend with its key, or by a command. */
  changes: { at: string; action: string; by: 'operator' | 'key' | 'cli' }[]
}

/** The types of events for an endpoint. Of participants it hears only where it names that. */
export type WebhookType =
  | 'call.ringing'
  | 'call.accepted'
  | 'call.connected'
  | 'call.ended'
  | 'call.rejected'
  | 'call.cancelled'
  | 'call.missed'
  | 'call.busy'
  | 'call.wake'
  | 'call.wake_cancelled'
  | 'participant.online'
  | 'participant.offline'

/** A webhook endpoint of the product. */
export interface Webhook {
  id: string
  url: string
  events: WebhookType[]
  description: string | null
  /** False: nothing is sent. So it is after an answer of 410. */
  enabled: boolean
  created_at: string
}

/** `secret` is what `webhooks.verify` asks for: `whsec_…`, shown this once. */
export interface WebhookWithSecret extends Webhook {
  secret: string
}

export interface WebhookRotated extends WebhookWithSecret {
  /** Until then both secrets sign. */
  old_secret_valid_until: string
}

export interface WebhookRequest {
  /** https, and a public address; at most 2,048 characters. */
  url: string
  /** All types of calls where it is null, or not given. */
  events?: WebhookType[] | null
  /** At most 255 characters. */
  description?: string | null
  /** True where it is not given. */
  enabled?: boolean
}

/** Fields that are not given stay as they are. */
export type WebhookChange = Partial<WebhookRequest>

/** What became of an event at an endpoint. */
export interface WebhookDelivery {
  /** The `id` of the event: `webhook-id`. */
  id: string
  type: string
  status: 'pending' | 'delivered' | 'failed'
  attempts: number
  created_at: string
  /** Null: it is over. */
  next_attempt_at: string | null
  ended_at: string | null
  /** Of the last attempt; null: no answer came. */
  response_status: number | null
  /** The first KiB of the answer, or the error. */
  response: string | null
}

export interface DeliveryPage {
  data: WebhookDelivery[]
  /** Give it as `cursor` for the next page; null on the last one. */
  next_cursor: string | null
}

export interface DeliveryFilter {
  status?: WebhookDelivery['status']
  /** 1 to 100 deliveries a page; 50 where it is not given. */
  limit?: number
  cursor?: string
}

/** A participant as the service knows it: a user_id is unique within its role. */
export interface Participant {
  role: string
  user_id: string
}

export interface TokenRequest extends Participant {
  display_name: string
  /** The role that this participant may call. */
  allowed_peer_role: string
  /** Further roles that it may call, at most 8. An agent who calls customers and transfers them to colleagues has two. */
  more_peer_roles?: string[] | null
  context_type: string
  context_id: string
  device_id?: string | null
  app_version?: string | null
}

export interface IceServer {
  urls: string[]
  username?: string
  credential?: string
}

export interface SessionToken {
  token: string
  expires_at: string
  ws_url: string
  ice_servers: IceServer[]
  /** If the product only passes relayed addresses [PRIV1]: hand it on with `ice_servers`. */
  ice_transport_policy?: 'relay'
  user: { user_id: string; role: string; display_name: string }
  allowed_actions: string[]
}

/** A transfer of an answered call. */
export interface TransferRequest {
  /** For which side. It leaves the call when the target answers. */
  by: 'caller' | 'callee'
  to: { role: string; user_id: string } | GroupName
  /** Of the new call, at most 1 KiB of JSON; that of the first call where it is not given. */
  metadata?: Record<string, unknown> | null
}

/** Names a group: a name is unique within its role. */
export interface GroupName {
  role: string
  group: string
}

/** Participants of one role who can be called together. */
export interface GroupSettings {
  /** all: every member at once. in_turn and longest_idle: one after another. */
  strategy: 'all' | 'in_turn' | 'longest_idle'
  /** How long one member rings before the next one: 5,000 to 60,000 ms. */
  member_ring_ms: number
  /** How long a call of the group rings in all: 5,000 to 600,000 ms. */
  ring_ms: number
}

export interface Group extends GroupName, GroupSettings {
  /** Their user_ids, in the order in which they have their turns. */
  members: string[]
}

export interface GroupSummary extends GroupName, GroupSettings {
  member_count: number
}

export interface GroupRequest {
  /** At most 500, each once. */
  members: string[]
  strategy: GroupSettings['strategy']
  /** 15,000 where it is not given. */
  member_ring_ms?: number | null
  /** 45,000 where it is not given. */
  ring_ms?: number | null
}

export interface GroupPage {
  data: GroupSummary[]
  next_cursor: string | null
}

/** The settings of a product. */
export interface ProductSettings {
  product: string
  /** The effect of a callee in another call on an invite. */
  busy: 'allow' | 'reject'
  /** Whether `call.invited` says `callee_busy`. */
  reveal_busy: boolean
  /** The longest time that calls ring, 5,000 to 180,000 ms; null: that of the service. */
  ring_timeout_ms: number | null
  /** relay: media only goes through the TURN server. */
  media: 'all' | 'relay'
  /** peers: participants see whether their peers are there. */
  presence: 'off' | 'peers'
  /** Whether another device of a participant may take an answered call. */
  take: boolean
  /** The URL that decides on each invite before it rings: https, and a public address; null: none. */
  invite_url: string | null
  /** What becomes of an invite without a valid answer. */
  invite_failure: 'allow' | 'refuse'
}

export type ProductChange = Partial<Omit<ProductSettings, 'product'>>

export interface ProductChanged extends ProductSettings {
  /** The secret that signs questions, if `invite_url` was given. The same one until `invite_url` was null. */
  invite_secret?: string
}

/** Whether a call may ring: `webhooks.verifyInvite` gives it, and an `InviteAnswer` is the answer. */
export interface InviteQuestion {
  /** The `webhook-id`: the same for the same call. */
  id: string
  type: 'call.invite'
  timestamp: string
  data: {
    call_uuid: string
    caller: Participant & { display_name: string }
    callee: Participant
    call_type: string
    context_type: string
    context_id: string
    metadata: Record<string, unknown> | null
  }
}

/** The answer of a backend to it within 2 s, as JSON with status 200. */
export type InviteAnswer =
  /** `metadata` replaces that of the invite; `ring_timeout_ms` only shortens. */
  | { decision: 'allow'; metadata?: Record<string, unknown>; ring_timeout_ms?: number }
  /** The caller gets `CALL_REFUSED` with the reason, in the form `[a-z0-9_]{1,64}`. */
  | { decision: 'refuse'; reason?: string }
  /** Somebody else is called, whose role the token of the caller has to allow. */
  | { decision: 'redirect'; callee: Participant }
