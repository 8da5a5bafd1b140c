# frozen_string_literal: true

# Whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md.
class Sight
  # A tailable cursor that is opened while inserts run may skip some of them (seen with the embedded server): so long
  # after the opening what is missing is asked for.
  CATCH_UP_NS = 100_000_000
  # While a cursor is silent, what is missing is asked for so often.
  ASK_EVERY_NS = 1_000_000_000
  # So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind.
  BLIND_AFTER_NS = 100_000_000

  # Messages that queries found since the cursor's last one.
  attr_reader :missed

  # This driver hides empty answers: only after two waits of the server one to a later question is there.
  def initialize(await_ms)
    @blind_after_ns = BLIND_AFTER_NS + 2_000_000 * await_ms
    @asked_ns = 0
  end

  def opened(now)
    # What was sent later cannot have been skipped.
    @after_ns = now + CATCH_UP_NS
    heard(0, now)
  end

  # The cursor has brought a message.
  def heard(sent_ns, now)
    @heard_ns = now
    @after_ns = sent_ns if sent_ns > @after_ns
    @missed = 0
    # The start of the oldest message missed, and when one was found that proves something.
    @missed_ns = @suspect_ns = nil
  end

  # Whether it is time for a query; the cursor is silent.
  def asks?(now)
    return false if now - @asked_ns < ASK_EVERY_NS

    @asked_ns = now
    true
  end

  # A query found a message that the cursor has not brought.
  def found(sent_ns, now)
    @missed += 1
    @missed_ns = [@missed_ns, [sent_ns, @heard_ns].max].compact.min
    @suspect_ns ||= now if sent_ns > @after_ns
  end

  # For how long the cursor is blind that, asked after the last query, has brought nothing; nil if it is not.
  def blind_ns(now)
    now - @missed_ns if @suspect_ns && now - @suspect_ns >= @blind_after_ns
  end
end
