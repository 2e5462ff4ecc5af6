export interface Size {
  readonly width: number
  readonly height: number
}

export type Fit = 'contain' | 'cover'

/** The part of a picture that has to stay visible when it fills the frame. */
const leastSeen = 0.6
/** Width by height, and CSS pixels, of a frame that is a phone. */
const uprightBelow = 0.8
const handheldBelow = 600

/**
 * How a picture goes into its frame: it fills it, unless too much of it would be cut off. A phone that is held upright is
 * filled in any case: only the sides are cut off, and a face is in the middle. A screen is always seen whole.
 */
export function fitOf(picture: Size, frame: Size, isScreen: boolean): Fit {
  const sizes = [picture.width, picture.height, frame.width, frame.height]
  if (isScreen || sizes.some((size) => !(size > 0))) return 'contain'
  const [of, into] = [picture.width / picture.height, frame.width / frame.height]
  const isUpright = into < uprightBelow && frame.width < handheldBelow
  return !isUpright && Math.min(of / into, into / of) < leastSeen ? 'contain' : 'cover'
}
