import { unset } from '../setting.ts'
import { iceUrls, integer, oneOrTwo, text } from '../values.ts'

/** The STUN and TURN servers that clients get. */
export const ice = {
  stunUrls: unset(
    'RINGWIRE_STUN_URLS',
    iceUrls('stun'),
    [] as readonly string[],
    'unset: none',
    'STUN servers for clients.',
  ),
  turnUrls: unset(
    'RINGWIRE_TURN_URLS',
    iceUrls('turn'),
    [] as readonly string[],
    'unset: none',
    'TURN servers for clients; needs RINGWIRE_TURN_SECRET, or RINGWIRE_TURN_USERNAME and RINGWIRE_TURN_CREDENTIAL.',
  ),
  turnSecrets: unset(
    'RINGWIRE_TURN_SECRET',
    oneOrTwo(text('secret'), 'holds two secrets: credentials are made with the first'),
    null,
    'unset',
    'The secret shared with the TURN servers (static-auth-secret of coturn): each token gets credentials of its own. Two while one is replaced: the first one makes them.',
    { secret: true },
  ),
  turnUsername: unset('RINGWIRE_TURN_USERNAME', text(), null, 'unset', 'Fixed TURN user name, if there is no secret.'),
  turnCredential: unset('RINGWIRE_TURN_CREDENTIAL', text(), null, 'unset', 'Fixed TURN credential.', { secret: true }),
  turnTtlS: unset(
    'RINGWIRE_TURN_TTL_S',
    integer(1, 86_400),
    null,
    'unset: as long as the token, at least 4 h',
    'Lifetime of the TURN credentials that are made with the secret.',
    { unit: 's' },
  ),
}
