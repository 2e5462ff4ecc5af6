import type { TransferState } from '@ringwire/client/transfer'
import type { Call, OverReason } from '@ringwire/client/types'
import type { EndedCall } from './line-state.ts'

/** The words of the components. `name` is the other side's. */
export const english = {
  calling: 'Calling …',
  ringing: 'Ringing …',
  connecting: 'Connecting …',
  reconnecting: 'Reconnecting …',
  live: 'Connected',
  incoming: ({ callType, group }: Call) =>
    `Incoming ${callType === 'video' ? 'video' : 'audio'} call${group ? ` for ${group}` : ''}`,
  accept: 'Accept',
  acceptWithoutCamera: 'Accept without camera',
  decline: 'Decline',
  stage: 'Call',
  controls: 'Call controls',
  mute: 'Mute microphone',
  cameraOff: 'Turn camera off',
  waiting: (name: string) => `${name} is calling`,
  holdAndAnswer: 'Hold and answer',
  endAndAnswer: 'End and answer',
  swap: 'Swap calls',
  otherOnHold: (name: string) => `${name} is on hold`,
  connectBoth: 'Connect them',
  connectQuestion: (one: string, two: string) => `Connect ${one} with ${two}?`,
  transfer: 'Transfer the call',
  transferTo: (name: string) => `Transfer to ${name}`,
  transferNow: 'Transfer',
  askFirst: 'Ask first',
  askFirstOf: (name: string) => `Ask first: ${name}`,
  findPerson: 'Find somebody',
  nobodyFound: 'Nobody found.',
  somebody: 'somebody else',
  hangUpQuestion: (name: string) => `Stop the transfer and hang up on ${name}?`,
  transferring: (target: string) => `Transferring to ${target} …`,
  beingTransferred: (by: string, target: string) => `${by} is connecting you with ${target} …`,
  stay: (name: string) => `Stay with ${name}`,
  transferFailed: transferText,
  transferredBy: (name: string) => `Transferred by ${name}`,
  shareScreen: 'Share screen',
  hold: 'Put on hold',
  cameraOn: 'Turn camera on',
  flip: 'Switch to the other camera',
  microphoneOptions: 'Choose microphone and speaker',
  cameraOptions: 'Choose camera',
  fullScreen: 'Full screen',
  hangUp: 'Hang up',
  cancel: 'Cancel the call',
  fill: 'Fill the frame',
  pictureInPicture: 'Picture in picture',
  onHold: 'On hold',
  heldBy: (name: string) => `${name} put you on hold`,
  peerMuted: (name: string) => `${name} is muted`,
  peerCameraOff: (name: string) => `${name} has the camera off`,
  peerShares: (name: string) => `${name} shares the screen`,
  peerSendsNothing: (name: string) => `${name} sends no sound and no picture`,
  notHeard: (name: string) => `You cannot hear ${name} right now`,
  notSeen: (name: string) => `You cannot see ${name} right now`,
  notHeardOrSeen: (name: string) => `You cannot hear or see ${name} right now`,
  muted: 'You cannot be heard',
  noMicrophone: 'No microphone: you cannot be heard',
  noCamera: 'No camera: you cannot be seen',
  noDevices: 'No microphone and no camera: you cannot be heard or seen',
  tapToHear: 'Tap to hear',
  poor: 'Poor connection',
  away: (name: string) => `${name} lost the connection`,
  awayLeft: (name: string, left: string) => `${name} lost the connection, ${left} left`,
  securityCode: 'Security code',
  compareCode: 'Compare these numbers with the other person.',
  otherCode: 'If theirs are different, somebody may be listening.',
  you: 'You',
  direct: 'Direct',
  relayed: 'Relayed by TURN',
  close: 'Close',
  camera: 'Camera',
  microphone: 'Microphone',
  speaker: 'Speaker',
  defaultDevice: 'Default',
  device: (kind: string, number: number) => `${kind} ${number}`,
  preview: 'Preview of your camera and microphone',
  level: 'Microphone level',
  notAllowed: (kind: string) => `${kind}: not allowed. Allow it in the browser, then try again.`,
  notFound: (kind: string) => `${kind}: none found.`,
  inUse: (kind: string) => `${kind}: another program uses it.`,
  unavailable: (kind: string) => `${kind}: cannot be used.`,
  tryAgain: 'Try again',
  restorable: (name: string) => `The call with ${name} goes on`,
  rejoin: 'Rejoin',
  takeable: (name: string) => `Your call with ${name} is at another device`,
  continueHere: 'Continue here',
  end: 'End call',
  over: (ended: EndedCall) => overText(ended),
  duration: (time: string) => `Duration ${time}`,
  callAgain: 'Call again',
  callBack: 'Call back',
}

export type Words = typeof english

export function nameOf({ peer, group }: Pick<Call, 'peer'> & Partial<Pick<Call, 'group'>>): string {
  return peer.displayName ?? peer.userId ?? group ?? ''
}

/** The words for an end; the first word may be the other side's name. */
const endings = {
  answered_elsewhere: 'Answered on another of your devices.',
  taken_elsewhere: 'You go on at another of your devices.',
  rejected_elsewhere: 'Declined on another of your devices.',
  left_group: 'You are no longer called for this group.',
  all_declined: 'Nobody at $ can take the call.',
  next_member: 'It is somebody else’s turn to answer.',
  superseded: 'A newer call replaced this one.',
  transferred: 'The call was transferred.',
  transfer_cancelled: 'The call that was being transferred ended.',
  'sdk.elsewhere': '',
  peer_lost: '$ did not come back.',
  max_duration: 'The call reached its longest duration.',
} satisfies Record<Exclude<OverReason, ToldByStatus>, string>

/** Of these the status says it all. */
type ToldByStatus =
  | ('hangup' | 'declined' | 'busy' | 'no_answer' | 'caller_cancelled' | 'caller_lost' | 'ended_by_server')
  | ('refused' | 'unavailable')
  | ('sdk.lost' | 'sdk.failed' | 'sdk.glare' | 'sdk.closed')

/** The call goes on elsewhere, or a newer one took its place: there is nobody to call again. */
export const isFinal = (reason: string) => /elsewhere|superseded/.test(reason)

/** The words when a call is over. */
export function overText({ call, state }: Pick<EndedCall, 'call' | 'state'>): string {
  const { status, reason, by, error } = state
  const name = nameOf(call)
  const mine = by !== null && (by.userId !== call.peer.userId || by.role !== call.peer.role)
  // Also if this member accepted a moment later.
  if (call.group && reason === 'answered_elsewhere') return `The call for ${call.group} was answered.`
  if (error) return errorText(error, name)
  const text = (endings as Record<string, string>)[reason]
  if (text) return text.replace('$', () => name)
  switch (status) {
    case 'missed':
      return call.direction === 'outgoing' ? `${name} did not answer.` : `You missed a call from ${name}.`
    case 'rejected':
      // Of a group that was called, the last member to decline is named.
      if (mine && call.peer.userId !== null) return 'You declined.'
      return reason === 'busy' ? `${name} is busy.` : `${name} declined.`
    case 'busy':
      return `${name} is busy.`
    case 'cancelled':
      return mine ? 'You cancelled the call.' : `${name} cancelled the call.`
    default:
      return mine ? 'You hung up.' : `The call with ${name} has ended.`
  }
}

/** The words for a transfer that failed; `name` is that of the target. */
function transferText({ status, reason, error }: TransferState, name: string): string {
  if (error?.code === 'CALL_INVALID_STATE') return 'This call cannot be transferred right now.'
  if (error) return errorText(error, name)
  // It may be the word for somebody whose name is not known.
  const who = name.charAt(0).toUpperCase() + name.slice(1)
  if (status === 'missed') return `${who} did not answer.`
  if (status === 'rejected' || status === 'busy') return `${who} ${reason === 'declined' ? 'declined' : 'is busy'}.`
  return 'The transfer was stopped.'
}

/** The words when something failed; `name` is that of the callee. An unknown code gives the message. */
export function errorText({ code, message }: { code: string; message: string }, name = 'this person'): string {
  switch (code) {
    case 'CALLEE_BUSY':
      return `${name} is busy.`
    case 'CALL_ALREADY_ANSWERED':
      return 'Answered on another of your devices.'
    case 'CALL_INVALID_STATE':
    case 'CALL_NOT_FOUND':
      return 'This call is already over.'
    case 'CALL_NOT_PARTICIPANT':
      return 'This call goes on in another tab or on another device.'
    case 'RATE_LIMITED':
      return 'That was a lot in a short time. Wait a moment.'
    case 'CALL_PEER_ROLE_NOT_ALLOWED':
    case 'ACTION_NOT_ALLOWED':
      return `You are not allowed to call ${name}.`
    case 'NOT_SUPPORTED_BY_PEER':
      return 'The other side cannot be transferred: its app does not know how.'
    case 'GROUP_NOT_FOUND':
      return 'There is no such group.'
    case 'CALL_TO_SELF':
      return 'You cannot call yourself.'
    case 'SERVICE_DRAINING':
    case 'SERVICE_UNAVAILABLE':
    case 'INTERNAL_ERROR':
      return 'The service is busy or restarts. Try again in a moment.'
    case 'CONNECTION_CLOSED':
    case 'TIMEOUT':
    case 'UNKNOWN_OUTCOME':
      return 'The connection was lost. Try again in a moment.'
    case 'AUTH_TOKEN_REQUIRED':
    case 'AUTH_TOKEN_INVALID':
      return 'You are no longer signed in.'
    case 'TOKEN_FAILED':
      return 'Signing in did not work. Try again in a moment.'
    default:
      return message || code
  }
}

/** 65 s are 1:05. */
export function durationText(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const whole = Math.max(0, Math.floor(seconds))
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}
