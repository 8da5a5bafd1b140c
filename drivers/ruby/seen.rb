# frozen_string_literal: true

# Received messages of one producer: one bit for each number, in words; empty words are omitted.
class Progress
  # Numbers in one word.
  WORD = 32
  FULL = (1 << WORD) - 1
  # Largest number of missing messages that a filter lists one by one; lower ones are requested as a range.
  NAMED = 4096

  attr_reader :newest

  def initialize
    @newest = -1
    @came = Hash.new(0)
  end

  # False if it was received before.
  def mark(number)
    word, bit = number / WORD, 1 << number % WORD
    came = @came[word]
    @came[word] = came | bit
    @newest = number if number > @newest
    (came & bit).zero?
  end

  # The newest overtaken messages, and the number below which there may be more.
  def overtaken
    missing, upper = [], @newest
    while upper >= 0
      first = upper - upper % WORD
      came = @came.fetch(upper / WORD, 0)
      missing.concat(upper.downto(first).select { |number| came[number - first].zero? }) unless came == FULL
      return missing.first(NAMED), missing[NAMED - 1] if missing.size >= NAMED

      upper = first - 1
    end
    [missing, 0]
  end
end

# Received messages, and the filter for missing ones: inserts in flight overtake each other.
class Seen
  attr_reader :count, :duplicates

  def initialize
    @count = @duplicates = 0
    @producers = {}
    # The `_id` of messages that a query found before the cursor returned them.
    @queried = {}
  end

  # Whether the message is new. A message that the cursor returns after a query found it, or that a query finds again,
  # does not count as a duplicate.
  def accept(producer, number, by_query)
    id = (producer << Common::PRODUCER_SHIFT) + number
    if (@producers[producer] ||= Progress.new).mark(number)
      @queried[id] = true if by_query
      @count += 1
      return true
    end
    @duplicates += 1 unless by_query || @queried.delete(id)
    false
  end

  # Messages that queries found and no cursor returned.
  def caught_up
    @queried.size
  end

  # Filter for all missing messages; without `newer`, only for overtaken ones.
  def filter(newer: true)
    return {} if @producers.empty?

    clauses, overtaken, above = [], [], {}
    @producers.sort.each do |producer, progress|
      first = producer << Common::PRODUCER_SHIFT
      clauses << { _id: { **above, '$lt': first } } if newer && first.positive?
      above = { '$gt': first + progress.newest }
      missing, below = progress.overtaken
      overtaken.concat(missing.map { |number| first + number })
      clauses << { _id: { '$gte': first, '$lt': first + below } } if below.positive?
    end
    clauses << { _id: above } if newer
    { '$or': clauses << { _id: { '$in': overtaken } } }
  end
end
